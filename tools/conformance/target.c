// SPDX-License-Identifier: GPL-2.0-only
#include "target.h"

#include <string.h>

static struct client client;

struct client *c = &client;
uint8_t *host;
int host_fd;
uint8_t *dataset;

uint32_t rd(uint32_t offset)
{
	return (uint32_t)client_read(c, RFPGA_BAR_REGS, offset, 4);
}

uint64_t rd64(uint32_t offset)
{
	return client_read(c, RFPGA_BAR_REGS, offset, 8);
}

void wr(uint32_t offset, uint32_t value)
{
	client_write(c, RFPGA_BAR_REGS, offset, value, 4);
}

void wr64(uint32_t offset, uint64_t value)
{
	client_write(c, RFPGA_BAR_REGS, offset, value, 8);
}

uint32_t doorbell_read(uint32_t offset)
{
	return c->doorbell[offset / 4];
}

void doorbell_write(uint32_t offset, uint32_t value)
{
	c->doorbell[offset / 4] = value;
}

uint64_t doorbell_read64(uint32_t offset)
{
	return *(volatile uint64_t *)(c->doorbell + offset / 4);
}

void doorbell_write64(uint32_t offset, uint64_t value)
{
	*(volatile uint64_t *)(c->doorbell + offset / 4) = value;
}

void memory_write(uint64_t offset, const void *data, size_t size)
{
	memcpy(c->memory + offset, data, size);
}

void memory_read(uint64_t offset, void *data, size_t size)
{
	memcpy(data, c->memory + offset, size);
}

uint32_t config_read(uint32_t offset)
{
	return client_config_read(c, offset);
}

void config_write(uint32_t offset, uint32_t value, unsigned int size)
{
	client_config_write(c, offset, value, size);
}

uint32_t dma_map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags)
{
	return client_map(c, addr, size, offset, flags, host_fd);
}

void dma_unmap(uint64_t addr, uint64_t size)
{
	client_unmap(c, addr, size);
}

int vector_event(uint32_t vector)
{
	return c->event[vector];
}

void function_reset(void)
{
	client_reset(c);
}
