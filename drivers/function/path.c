// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: verify what DMA addresses lead to (host memory or a BAR of another function), and whether
 * a path exists.
 *
 * No other code checks what an exporter has mapped. Errors look like success until data is missing:
 * raw BAR addresses behind an IOMMU, host memory instead of device memory, or a host bridge that
 * drops peer-to-peer writes.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/ioport.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/memory.h"
#include "function/function.h"

enum rashpa_p2p_bridge {
	RASHPA_P2P_AUTO,
	RASHPA_P2P_ALLOW,
	RASHPA_P2P_DENY,
};

static const char * const rashpa_p2p_names[] = {
	[RASHPA_P2P_AUTO] = "auto",
	[RASHPA_P2P_ALLOW] = "allow",
	[RASHPA_P2P_DENY] = "deny",
};

static enum rashpa_p2p_bridge p2p_bridge;

static int rashpa_p2p_set(const char *val, const struct kernel_param *kp)
{
	int i = sysfs_match_string(rashpa_p2p_names, val);

	if (i < 0)
		return i;
	WRITE_ONCE(p2p_bridge, i);
	return 0;
}

static int rashpa_p2p_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", rashpa_p2p_names[READ_ONCE(p2p_bridge)]);
}

static const struct kernel_param_ops rashpa_p2p_ops = {
	.set = rashpa_p2p_set,
	.get = rashpa_p2p_get,
};

module_param_cb(p2p_bridge, &rashpa_p2p_ops, NULL, 0644);
MODULE_PARM_DESC(p2p_bridge, "peer-to-peer through the host bridge: auto (if the kernel knows that it routes, which needs CONFIG_PCI_P2PDMA), allow, deny");

/* ---------------------------------------------------------- topology ---- */

/* Does ACS at this port redirect peer-to-peer requests up to the root complex? */
static bool rashpa_port_redirects(struct pci_dev *bridge)
{
	int acs = pci_find_ext_capability(bridge, PCI_EXT_CAP_ID_ACS);
	u16 ctrl = 0;

	if (acs)
		pci_read_config_word(bridge, acs + PCI_ACS_CTRL, &ctrl);
	return ctrl & (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC);
}

static bool rashpa_is_above(struct pci_dev *bridge, struct pci_dev *pdev)
{
	for (; pdev; pdev = pci_upstream_bridge(pdev))
		if (pdev == bridge)
			return true;
	return false;
}

/*
 * Does a switch route requests to the peer directly? Like the kernel's P2PDMA, check the common
 * bridge and the functions themselves, too: they may belong to one device.
 */
static bool rashpa_switch_routes(struct pci_dev *importer, struct pci_dev *peer)
{
	struct pci_dev *pdev;

	for (pdev = importer; pdev; pdev = pci_upstream_bridge(pdev)) {
		if (rashpa_port_redirects(pdev))
			return false;
		if (rashpa_is_above(pdev, peer))
			break;
	}
	if (!pdev)
		return false;
	for (; peer != pdev; peer = pci_upstream_bridge(peer))
		if (rashpa_port_redirects(peer))
			return false;
	return true;
}

/*
 * Find the path from one function to the BARs of another. Return: RASHPA_CLASS_PEER (across a
 * switch), RASHPA_CLASS_BRIDGE (through the host bridge), or -ENXIO.
 */
int rashpa_path_between(struct rashpa_call *call, struct pci_dev *importer, struct pci_dev *peer)
{
	enum rashpa_p2p_bridge policy = READ_ONCE(p2p_bridge);

	if (importer == peer)
		return rashpa_fail(call, -ENXIO, "the memory is in fpga%d itself: it needs no map",
				   ((struct rashpa_device *)pci_get_drvdata(peer))->id);
	if (pci_domain_nr(importer->bus) != pci_domain_nr(peer->bus))
		return rashpa_fail(call, -ENXIO,
				   "%s and %s are in different PCI domains: there is no path between them",
				   pci_name(importer), pci_name(peer));
	/* translated requests always pass the root complex */
	if (!rashpa_pci_translated(importer) && rashpa_switch_routes(importer, peer))
		return RASHPA_CLASS_PEER;
	if (policy == RASHPA_P2P_DENY)
		return rashpa_fail(call, -ENXIO,
				   "the path from %s to %s goes through the host bridge, which the module parameter p2p_bridge denies",
				   pci_name(importer), pci_name(peer));
	if (policy == RASHPA_P2P_AUTO && !rashpa_p2p_known(importer, peer))
		return rashpa_fail(call, -ENXIO,
				   "the path from %s to %s goes through a host bridge that the kernel does not know to route: put both behind one switch (without an IOMMU), or set the module parameter p2p_bridge=allow if it routes",
				   pci_name(importer), pci_name(peer));
	return RASHPA_CLASS_BRIDGE;
}

/*
 * Flush unmapped addresses from the IOMMU. The DMA core clears page tables at once but flushes the
 * IOTLB later, unless iommu.strict=1 is set, which is not the default of distributions.
 */
void rashpa_path_flush(struct pci_dev *pdev)
{
	if (rashpa_pci_translated(pdev))
		iommu_flush_iotlb_all(iommu_get_domain_for_dev(&pdev->dev));
}

/* --------------------------------------------------------- addresses ---- */

/* Does an IOMMU translate the addresses of a function? Not in passthrough mode. */
bool rashpa_pci_translated(struct pci_dev *pdev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pdev->dev);

	return domain && (domain->type & __IOMMU_DOMAIN_PAGING);
}

/* Highest address that a function can send: DMA mask, or the limit of the bus if that is lower. */
static u64 rashpa_dma_limit(struct device *dev)
{
	return min_not_zero(dma_get_mask(dev), dev->bus_dma_limit);
}

/*
 * Can a function send all addresses of a range of @length > 0 bytes? Replaces dma_capable(), which
 * not all kernels export to modules.
 */
bool rashpa_dma_reaches(struct device *dev, dma_addr_t address, u64 length)
{
	u64 last;

	return !check_add_overflow((u64)address, length - 1, &last) &&
	       last <= rashpa_dma_limit(dev);
}

/* Report why a function cannot use the address of a memory. */
int rashpa_dma_fail(struct rashpa_call *call, struct rashpa_device *dev)
{
	struct device *d = &dev->pdev->dev;

	if (is_swiotlb_force_bounce(d))
		return rashpa_fail(call, -EREMOTEIO,
				   "all DMA uses bounce buffers here (swiotlb=force, or a confidential guest): enable the IOMMU or disable bounce buffers");
	return rashpa_fail(call, -EOVERFLOW,
			   "the memory is above what fpga%d can address (%d bits): allocate it with dma_bits (rashpactl buffer create --for fpga%d, or dma_bits in buffers.d), or enable the IOMMU",
			   dev->id, fls64(rashpa_dma_limit(d)), dev->id);
}

/* Memory that an address leads to. */
struct rashpa_place {
	struct pci_dev *peer;		/* one reference; NULL for host memory */
	u32 bar;			/* of @peer */
	bool device;			/* device memory outside of BARs */
	phys_addr_t start;
	phys_addr_t end;		/* CPU address of the last byte */
};

static bool rashpa_place_has(const struct rashpa_place *place, phys_addr_t phys)
{
	return phys >= place->start && phys <= place->end;
}

static int rashpa_ram_has(struct resource *res, void *arg)
{
	struct rashpa_place *place = arg;

	if (place->start < res->start || place->start > res->end)
		return 0;
	place->start = res->start;
	place->end = res->end;
	place->device = res->flags & IORESOURCE_SYSRAM_DRIVER_MANAGED;
	return 1;
}

/*
 * Find the whole range of system RAM around @phys, so that the next page needs no search. For
 * ZONE_DEVICE return only the page, which is found without a search.
 *
 * Memory with pages can belong to a device and be coherent: either in ZONE_DEVICE, or added to
 * system RAM as a NUMA node without CPUs. The latter is indistinguishable from CXL memory.
 */
static bool rashpa_place_ram(struct rashpa_place *place, phys_addr_t phys)
{
	struct page *page = pfn_valid(PHYS_PFN(phys)) ? pfn_to_page(PHYS_PFN(phys)) : NULL;

	*place = (struct rashpa_place) { .start = phys };
	if (page && is_zone_device_page(page)) {
		place->device = is_device_coherent_page(page) || is_device_private_page(page);
		place->start = phys & PAGE_MASK;
		place->end = phys | ~PAGE_MASK;
		return true;
	}
	if (walk_iomem_res_desc(IORES_DESC_NONE, IORESOURCE_SYSTEM_RAM, 0, -1, place,
				rashpa_ram_has) > 0) {
		place->device = place->device &&
				!node_state(pfn_to_nid(PHYS_PFN(phys)), N_CPU);
		return true;
	}
	return false;
}

/* Find the BAR that contains @phys, or set @gap to the range around it without a BAR. */
static bool rashpa_place_bar(struct rashpa_place *place, phys_addr_t phys, struct rashpa_place *gap)
{
	struct pci_dev *pdev = NULL;

	*gap = (struct rashpa_place) { .end = PHYS_ADDR_MAX };
	for_each_pci_dev(pdev) {
		for (place->bar = 0; place->bar < RASHPA_BARS; place->bar++) {
			unsigned long flags = pci_resource_flags(pdev, place->bar);

			if (!(flags & IORESOURCE_MEM) || flags & IORESOURCE_UNSET ||
			    !pci_resource_len(pdev, place->bar))
				continue;
			place->start = pci_resource_start(pdev, place->bar);
			place->end = pci_resource_end(pdev, place->bar);
			if (rashpa_place_has(place, phys)) {
				place->peer = pdev;	/* with the reference of the loop */
				return true;
			}
			if (place->end < phys)
				gap->start = max(gap->start, place->end + 1);
			else
				gap->end = min(gap->end, place->start - 1);
		}
	}
	return false;
}

/* State of the check of a map. */
struct rashpa_check {
	struct rashpa_call *call;
	struct rashpa_device *dev;
	struct iommu_domain *domain;	/* domain of @dev, NULL without translation */
	struct rashpa_pieces *pieces;
	struct rashpa_place place;	/* place of the last checked address, if @found */
	struct rashpa_place gap;	/* last found range that contains no BAR */
	bool found;
};

/* Enter a new range; it must be the same kind of memory as the previous ones. Takes place->peer. */
static int rashpa_check_enter(struct rashpa_check *check, const struct rashpa_place *place)
{
	if (check->found &&
	    (place->peer != check->place.peer || place->bar != check->place.bar ||
	     place->device != check->place.device)) {
		pci_dev_put(place->peer);
		return rashpa_fail(check->call, -EREMOTEIO,
				   "the exporter's table leads to different kinds of memory: host memory and BARs, or BARs of several functions");
	}
	pci_dev_put(check->place.peer);
	check->place = *place;
	check->found = true;
	return 0;
}

/* Look up a new range. */
static int rashpa_check_place(struct rashpa_check *check, phys_addr_t phys)
{
	struct rashpa_place place = {};

	/* BARs first: they can have pages as well */
	if ((rashpa_place_has(&check->gap, phys) ||
	     !rashpa_place_bar(&place, phys, &check->gap)) && !rashpa_place_ram(&place, phys))
		return rashpa_fail(check->call, -EREMOTEIO,
				   "the exporter's table leads to neither host memory nor a BAR");
	return rashpa_check_enter(check, &place);
}

/* Check CPU addresses: all must lead to memory of one kind. */
static int rashpa_check_phys(struct rashpa_check *check, phys_addr_t phys, u64 length)
{
	int err;

	while (length) {
		u64 n;

		if (!check->found || !rashpa_place_has(&check->place, phys)) {
			err = rashpa_check_place(check, phys);
			if (err)
				return err;
		}
		/* minus and plus one: a place may end at the highest address */
		n = min_t(u64, length - 1, check->place.end - phys) + 1;
		phys += n;
		length -= n;
	}
	return 0;
}

/* Check memory of this driver: on a node with CPUs it is host memory, without a search. */
static int rashpa_check_host(struct rashpa_check *check, const struct rashpa_extent *extent)
{
	const u64 length = (u64)extent->count << PAGE_SHIFT;
	struct rashpa_place place = { .start = page_to_phys(extent->first) };

	if (is_zone_device_page(extent->first) || !node_state(page_to_nid(extent->first), N_CPU))
		return rashpa_check_phys(check, place.start, length);
	place.end = place.start + length - 1;
	return rashpa_check_enter(check, &place);
}

static int rashpa_check_unknown(struct rashpa_check *check)
{
	return rashpa_fail(check->call, -EREMOTEIO,
			   "the exporter's table has addresses that the IOMMU of fpga%d does not know",
			   check->dev->id);
}

static int rashpa_check_pages(struct rashpa_check *check, u64 addr, u64 length)
{
	phys_addr_t phys;
	int err = 0;
	u64 n;

	for (; length && !err; addr += n, length -= n) {
		n = min_t(u64, length, PAGE_SIZE - (addr & ~PAGE_MASK));
		phys = iommu_iova_to_phys(check->domain, addr);
		err = phys ? rashpa_check_phys(check, phys, n) : rashpa_check_unknown(check);
		cond_resched();
	}
	return err;
}

/* Largest range that an IOMMU maps with one page table entry, if the addresses allow it. */
#define RASHPA_CHECK_STEP	SZ_2M

/*
 * Check both ends of each 2 MiB: if they are as far apart in memory as in DMA addresses, the chunk
 * was mapped as a whole. Checking each of its pages would take many times longer than mapping
 * it. All other memory is checked page by page, as it was mapped.
 */
static int rashpa_check_translated(struct rashpa_check *check, u64 addr, u64 length)
{
	phys_addr_t phys = iommu_iova_to_phys(check->domain, addr), next;
	int err = 0;
	u64 n;

	for (; length && !err; addr += n, length -= n, phys = next) {
		n = min_t(u64, length, RASHPA_CHECK_STEP - (addr & (RASHPA_CHECK_STEP - 1)));
		next = n < length ? iommu_iova_to_phys(check->domain, addr + n) : 0;
		if (!phys)
			err = rashpa_check_unknown(check);
		else if (next == phys + n ||
			 iommu_iova_to_phys(check->domain, addr + n - 1) == phys + n - 1)
			err = rashpa_check_phys(check, phys, n);
		else
			err = rashpa_check_pages(check, addr, n);
		cond_resched();
	}
	return err;
}

/*
 * The IOMMU does not know the address: the exporter handed out an untranslated BAR address. Map it
 * on behalf of the exporter.
 */
static int rashpa_check_remap(struct rashpa_check *check, struct rashpa_piece *piece)
{
	struct device *dev = &check->dev->pdev->dev;
	phys_addr_t phys = piece->address;
	dma_addr_t addr;
	int err;

	err = rashpa_check_phys(check, phys, piece->length);
	if (err)
		return err;
	if (!check->place.peer)
		return rashpa_check_unknown(check);
	/* check first: a forbidden peer must not become accessible */
	err = rashpa_path_between(check->call, check->dev->pdev, check->place.peer);
	if (err < 0)
		return err;
	addr = dma_map_resource(dev, phys, piece->length, check->pieces->dir, 0);
	if (dma_mapping_error(dev, addr))
		return rashpa_fail(check->call, -EREMOTEIO,
				   "the exporter's table has untranslated addresses, which cannot be mapped");
	piece->address = addr;
	piece->remapped = true;
	check->pieces->remapped = true;
	return 0;
}

/*
 * Check bus addresses. The windows of a host bridge may have other CPU addresses than bus
 * addresses; all addresses outside of them are memory.
 */
static int rashpa_check_bus(struct rashpa_check *check, const struct rashpa_piece *piece)
{
	struct pci_bus_region region = { .start = piece->address, .end = piece->address };
	struct resource res = { .flags = IORESOURCE_MEM };
	struct rashpa_place *place = &check->place;
	struct pci_dev *pdev = check->dev->pdev;
	phys_addr_t phys;
	int err;

	pcibios_bus_to_resource(pdev->bus, &res, &region);
	phys = res.start != piece->address ? res.start : dma_to_phys(&pdev->dev, piece->address);
	err = rashpa_check_phys(check, phys, piece->length);
	if (!err && place->peer &&
	    pci_bus_address(place->peer, place->bar) + (phys - place->start) != piece->address)
		return rashpa_fail(check->call, -EREMOTEIO,
				   "the exporter's table has the CPU address of a BAR, which differs from its bus address");
	return err;
}

static int rashpa_check_piece(struct rashpa_check *check, struct rashpa_piece *piece, bool host)
{
	/* the mask first: the DMA core would warn */
	if (!rashpa_dma_reaches(&check->dev->pdev->dev, piece->address, piece->length))
		return rashpa_dma_fail(check->call, check->dev);
	if (host)
		return 0;
	if (!check->domain)
		return rashpa_check_bus(check, piece);
	if (!iommu_iova_to_phys(check->domain, piece->address))
		return rashpa_check_remap(check, piece);
	return rashpa_check_translated(check, piece->address, piece->length);
}

static int rashpa_check_class(struct rashpa_check *check, bool device_only)
{
	struct rashpa_pieces *pieces = check->pieces;
	struct pci_dev *peer = check->place.peer;
	int class;

	if (!peer) {
		pieces->coherent = check->place.device;
		if (device_only && !pieces->coherent)
			return rashpa_fail(check->call, -EREMOTEIO,
					   "the memory lies in the host, not in a device: the exporter has moved it, or it never was device memory");
		pieces->class = check->domain ? RASHPA_CLASS_IOVA : RASHPA_CLASS_HOST;
		return 0;
	}
	class = rashpa_path_between(check->call, check->dev->pdev, peer);
	if (class < 0)
		return class;
	pieces->class = class;
	pieces->peer = pci_dev_get(peer);
	pieces->peer_bar = check->place.bar;
	return 0;
}

/*
 * Verify where the addresses of a map lead: fill in class and peer, and replace untranslated
 * addresses. @host: memory of this driver, or NULL: its pages are known, so neither BARs nor the
 * IOMMU are searched. @device_only: refuse host memory. Return: 0, -EREMOTEIO, -EOVERFLOW, -ENXIO.
 */
int rashpa_pieces_check(struct rashpa_call *call, struct rashpa_device *dev,
			struct rashpa_pieces *pieces, const struct rashpa_memory *host,
			bool device_only)
{
	struct rashpa_check check = {
		.call = call,
		.dev = dev,
		.pieces = pieces,
		.gap.start = host ? 0 : PHYS_ADDR_MAX,
		.gap.end = host ? PHYS_ADDR_MAX : 0,
	};
	u32 i;
	int err = 0;

	if (rashpa_pci_translated(dev->pdev))
		check.domain = iommu_get_domain_for_dev(&dev->pdev->dev);
	for (i = 0; i < pieces->count && !err; i++) {
		err = rashpa_check_piece(&check, &pieces->piece[i], host);
		cond_resched();
	}
	for (i = 0; host && i < host->n_extents && !err; i++) {
		err = rashpa_check_host(&check, &host->extents[i]);
		cond_resched();
	}
	if (!err)
		err = rashpa_check_class(&check, device_only);
	pci_dev_put(check.place.peer);
	return err;
}

/*
 * Merge the adjacent address ranges of a part of an exporter's table. Return: pieces for
 * rashpa_pieces_put(), or an error pointer: -ENOMEM, -EREMOTEIO.
 */
struct rashpa_pieces *rashpa_pieces_get(struct rashpa_call *call, struct rashpa_device *dev,
					struct sg_table *sgt, enum dma_data_direction dir,
					u64 offset, u64 length)
{
	/* exporters map whole pages */
	const u32 room = min_t(u64, sgt->nents, PAGE_ALIGN(length) >> PAGE_SHIFT);
	struct rashpa_piece *p = NULL;
	struct rashpa_pieces *pieces;
	struct scatterlist *sg;
	int i;

	pieces = kvzalloc(struct_size(pieces, piece, room), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pieces)
		return ERR_PTR(-ENOMEM);
	pieces->dev = dev;
	pieces->dir = dir;
	pieces->size = struct_size(pieces, piece, room) +
		       sgt->orig_nents * sizeof(struct scatterlist);
	for_each_sgtable_dma_sg(sgt, sg, i) {
		const u64 skip = min_t(u64, offset, sg_dma_len(sg));
		const u64 address = sg_dma_address(sg) + skip;
		const u64 n = min(sg_dma_len(sg) - skip, length);

		cond_resched();
		offset -= skip;
		if (n && (!p || address != p->address + p->length)) {
			if (pieces->count == room)
				break;
			p = &pieces->piece[pieces->count++];
			p->address = address;
		}
		if (n)
			p->length += n;
		length -= n;
	}
	if (!length)
		return pieces;
	kvfree(pieces);
	return ERR_PTR(rashpa_fail(call, -EREMOTEIO,
				   "the exporter's table ends 0x%llx bytes too early, or has ranges of less than a page",
				   length));
}

/* Release the address ranges of a map, whose function has stopped. */
void rashpa_pieces_put(struct rashpa_pieces *pieces)
{
	u16 id;
	u32 i;

	if (!pieces)
		return;
	/*
	 * A switch may have routed writes of the function directly to the peer. Then the answer
	 * that confirmed the stop did not flush them, but a read from the peer does. A read of
	 * configuration space has no side effects.
	 */
	if (pieces->peer)
		pci_read_config_word(pieces->peer, PCI_VENDOR_ID, &id);
	pci_dev_put(pieces->peer);
	for (i = 0; i < pieces->count; i++) {
		if (pieces->piece[i].remapped)
			dma_unmap_resource(&pieces->dev->pdev->dev, pieces->piece[i].address,
					   pieces->piece[i].length, pieces->dir, 0);
		cond_resched();
	}
	kvfree(pieces);
}
