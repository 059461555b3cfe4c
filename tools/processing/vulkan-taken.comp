// SPDX-License-Identifier: LGPL-2.1-or-later
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan-drive.glsl"

void main()
{
	begin();
	/* behind the copy */
	if (lane() == 0u && decision[RPU_DECISION_IS] == RPU_ACCEPTED)
		tell(RPU_CONTROL_TAKEN, decision[RPU_DECISION_NUMBER]);
}
