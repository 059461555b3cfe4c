// SPDX-License-Identifier: LGPL-2.1-or-later
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan-drive.glsl"

void main()
{
	begin();
	take();
}
