/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Whether IOMMUs stand between boards and memory. */
#ifndef IOMMU_H
#define IOMMU_H

/* Units, groups of devices, and those groups whose addresses are translated (not iommu=pt). */
struct iommu {
	int units, groups, translated;
};

/* root: "" or a folder with another /sys, for tests. */
void iommu_look(struct iommu *iommu, const char *root);

#endif /* IOMMU_H */
