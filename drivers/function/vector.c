// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: interrupt vectors as origins of events.
 */
#include <linux/interrupt.h>
#include <linux/slab.h>

#include "core/trace.h"
#include "function/function.h"

#define RASHPA_VECTORS_MAX	64

static irqreturn_t rashpa_vector_fire(int irq, void *data)
{
	struct rashpa_vector *vector = data;

	trace_rashpa_interrupt(vector->dev->id, vector->index);
	if (!rashpa_origin_signal(&vector->origin))
		rashpa_origin_fire(&vector->origin, vector->index);
	return IRQ_HANDLED;
}

/*
 * Mask the vector while no listener needs it, until the consumer has handled the last event. An
 * interrupt in between stays pending and is delivered after the unmask.
 */
static void rashpa_vector_mask(struct rashpa_origin *origin, bool mask)
{
	const struct rashpa_vector *vector = container_of(origin, struct rashpa_vector, origin);

	if (mask)
		disable_irq_nosync(vector->irq);
	else
		enable_irq(vector->irq);
}

/* Listeners stay on the lists of the vectors until the function is released. */
void rashpa_vectors_free(struct rashpa_device *dev, u32 requested)
{
	while (requested--) {
		rashpa_origin_end(&dev->vectors[requested].origin);
		free_irq(dev->vectors[requested].irq, &dev->vectors[requested]);
	}
	pci_free_irq_vectors(dev->pdev);
}

/* A function without message interrupts is still usable: it can signal through lock memory. */
int rashpa_vectors_init(struct rashpa_device *dev)
{
	int n, err;
	u32 i;

	n = pci_alloc_irq_vectors(dev->pdev, 1, RASHPA_VECTORS_MAX, PCI_IRQ_MSIX | PCI_IRQ_MSI);
	if (n < 0) {
		dev_info(&dev->pdev->dev, "no message interrupts (%d)\n", n);
		return 0;
	}
	dev->vectors = kcalloc(n, sizeof(*dev->vectors), GFP_KERNEL);
	if (!dev->vectors) {
		pci_free_irq_vectors(dev->pdev);
		return -ENOMEM;
	}
	for (i = 0; i < n; i++) {
		struct rashpa_vector *vector = &dev->vectors[i];

		rashpa_origin_init(&vector->origin);
		vector->origin.hard = true;
		vector->dev = dev;
		vector->index = i;
		vector->irq = pci_irq_vector(dev->pdev, i);
		snprintf(vector->name, sizeof(vector->name), "rashpa-fpga%d-%u", dev->id, i);
		err = request_irq(vector->irq, rashpa_vector_fire, 0, vector->name, vector);
		if (err) {
			rashpa_vectors_free(dev, i);
			return err;
		}
		vector->origin.mask = rashpa_vector_mask;
	}
	dev->n_vectors = n;
	return 0;
}

u64 rashpa_vectors_sum(struct rashpa_device *dev)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < dev->n_vectors; i++)
		sum += READ_ONCE(dev->vectors[i].origin.sequence);
	return sum;
}
