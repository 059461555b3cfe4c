// SPDX-License-Identifier: LGPL-2.1-or-later
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan-drive.glsl"

void main()
{
	begin();
	decide();
	/* without a result its copy has no groups */
	if (lane() == 0u) {
		const uint groups = decision[RPU_DECISION_IS] != RPU_ACCEPTED ? 0u :
			(pixels + RPU_RECORD - 1u) / RPU_LANES + 1u;

		decision[RPU_DECISION_GROUPS] = min(groups, RPU_LINE);
		decision[RPU_DECISION_GROUPS + 1u] = (groups + RPU_LINE - 1u) / RPU_LINE;
		decision[RPU_DECISION_GROUPS + 2u] = 1u;
	}
}
