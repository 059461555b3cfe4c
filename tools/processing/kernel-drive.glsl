// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What decides, on the GPU, whether an image goes to the host; and the kernel that stays. Who
 * includes this has words of the control block, has() and tell(), which are in order with all else,
 * and so are lock_is() and give(); first, image_number and this_group can be set.
 */

DEVICE uint this_bank()
{
	return decision[RPU_DECISION_BANK] * (pixels + RPU_RECORD);
}

/* The host says so before the image arrives. */
DEVICE bool is_dark()
{
	return has(RPU_CONTROLS + (image_number ^ pairs) % (ring_slots + RPU_ROLES_MORE)) != 0u;
}

/* The words of this group: pretreat a signal, or move the pedestal by a dark image. */
DEVICE void take()
{
	if (!is_dark())
		pretreat();
	else if (weight > 0.0f)
		dark();
}

/* Once, since the host takes results meanwhile. */
DEVICE void decide()
{
	const uint accepted = has(RPU_CONTROL_ACCEPTED);

	if (lane() != 0u)
		return;
	decision[RPU_DECISION_BANK] = accepted % bank_count;
	decision[RPU_DECISION_NUMBER] = accepted + 1u;
	decision[RPU_DECISION_IS] = is_dark() ? RPU_DARK :
		told[RPU_TOLD_ABOVE] < least ? RPU_VETOED :
		accepted - has(RPU_CONTROL_FREED) < bank_count ? RPU_ACCEPTED : RPU_DROPPED;
}

DEVICE void bank()
{
	const uint i = group() * RPU_LANES + lane();

	if (decision[RPU_DECISION_IS] == RPU_ACCEPTED && i < pixels)
		banks[this_bank() + i] = image[i];
}

/* The bank is complete before its number is seen. */
DEVICE void publish()
{
	if (lane() != 0u)
		return;
	if (decision[RPU_DECISION_IS] == RPU_ACCEPTED) {
		banks[this_bank() + pixels] = image_number ^ pairs;
		banks[this_bank() + pixels + 1u] = told[RPU_TOLD_ABOVE];
		banks[this_bank() + pixels + 2u] = has(RPU_CONTROL_DARK);
		tell(RPU_CONTROL_ACCEPTED, decision[RPU_DECISION_NUMBER]);
	} else if (decision[RPU_DECISION_IS] == RPU_DROPPED) {
		tell(RPU_CONTROL_DROPPED, has(RPU_CONTROL_DROPPED) + 1u);
	} else if (decision[RPU_DECISION_IS] == RPU_DARK) {
		tell(RPU_CONTROL_DARK, has(RPU_CONTROL_DARK) + 1u);
	}
}

/* Wait for the lock, with so many looks in vain left: how many are left then. */
DEVICE uint await(uint value, uint left)
{
	if (lane() == 0u) {
		while (int(lock_is() - value) < 0 && has(RPU_CONTROL_STOP) == 0u &&
		       (polls == 0u || left != 0u)) {
			left -= uint(polls != 0u);
			RPU_REST();
		}
		decision[RPU_DECISION_STOP] = uint(has(RPU_CONTROL_STOP) != 0u ||
						   int(lock_is() - value) < 0);
	}
	barrier();
	return left;
}

/*
 * Process image by image with all lanes of the only group, until STOP is set. It also ends after a
 * number of vain polls, since the driver would take a longer kernel for a hang.
 */
DEVICE void poll()
{
	const uint words = (pixels * pixel_bytes + 3u) / 4u, begin = first;
	uint left = polls, n;

	for (uint k = 0u; k < images; k++) {
		image_number = lock_first + k * lock_step;
		left = await((image_number | pairs) / lock_images + 1u, left);
		if (decision[RPU_DECISION_STOP] != 0u)
			return;
		first = begin + (image_number ^ pairs) % ring_slots * ring_step;
		for (this_group = 0u; this_group * RPU_LANES < words; this_group++)
			take();
		barrier();
		/* the raw image is no longer needed */
		if (gives != 0u && lane() == 0u && (image_number + 1u) % lock_images == 0u)
			give(image_number / lock_images + 1u);
		n = 0u;
		for (uint i = lane(); i < pixels; i += RPU_LANES)
			n += uint(is_above(i));
		n = sum_up(n);
		if (lane() == RPU_LANES - 1u)
			told[RPU_TOLD_ABOVE] = n;
		barrier();
		decide();
		barrier();
		for (this_group = 0u; this_group * RPU_LANES < pixels; this_group++)
			bank();
		barrier();
		publish();
		if (lane() == 0u)
			tell(RPU_CONTROL_COMPUTED, has(RPU_CONTROL_COMPUTED) + 1u);
		barrier();
	}
}
