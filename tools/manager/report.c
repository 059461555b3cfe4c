// SPDX-License-Identifier: LGPL-2.1-or-later
/* The account of a run, by flow: sent = received + lost. */
#include "manager/manager.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "common/shown.h"

/* A flow with the counts of both ends. */
struct account {
	bool known;		/* both reported, and the receiver can know the number sent */
	uint64_t sent, received, lost;
	int64_t unaccounted;	/* sent and neither received nor lost */
};

/* The detector's counts of the link to the flow's receiver; over PCIe it has only one link. */
static const struct counts *sent_counts(const struct flow *f)
{
	for (unsigned int i = 0; *f->address && i < f->from->links; i++) {
		if (!strcmp(f->from->link[i].to, f->address))
			return &f->from->link[i].counts;
	}
	return *f->address && f->from->links ? NULL : &f->from->counts;
}

static struct account account_of(const struct flow *f)
{
	const struct counts *from = sent_counts(f), *to = &f->to->counts;
	const uint32_t images = 1u << COUNT_IMAGES;
	struct account a = {};

	a.known = from && from->known & to->known & images && f->from->ended && f->to->ended;
	a.sent = from ? from->value[COUNT_IMAGES] : 0;
	a.received = to->value[COUNT_IMAGES];
	a.lost = to->value[COUNT_LOST];
	a.unaccounted = a.sent - a.received - a.lost;
	/* its detector tells the receiver nothing, least of all how many images it sent */
	if ((f->transport->has & (TRANSPORT_NETWORK | TRANSPORT_CONTRACT)) == TRANSPORT_NETWORK &&
	    a.unaccounted > 0)
		a.known = false;
	return a;
}

static const char *outcome(const struct party *p, char *to, size_t size)
{
	if (!p->ended)
		snprintf(to, size, p->wire ? "running" : "gone");
	else
		attribute(telegram_content(p->ended), "outcome", to, size);
	return to;
}

static const char *reason(const struct party *p, char *to, size_t size)
{
	const xmlNode *node = p->ended ? element_find(telegram_content(p->ended), "reason") : NULL;

	*to = 0;
	if (node)
		element_text(node, to, size);
	else if (!p->ended)
		snprintf(to, size, "%s", p->error);
	return to;
}

static struct json_object *party_json(const struct party *p)
{
	struct json_object *o = json_object_new_object(), *counts = json_object_new_object();
	const xmlNode *node = p->ended ? element_find(telegram_content(p->ended), "report") : NULL;
	char text[1024], *whole;

	put_text(o, "name", p->name);
	put_text(o, "role", p->detector ? "detector" : "receiver");
	put_text(o, "outcome", outcome(p, text, sizeof(text)));
	put_text(o, "reason", *reason(p, text, sizeof(text)) ? text : NULL);
	for (enum count i = 0; i < COUNT_KINDS; i++) {
		if (p->counts.known & 1u << i)
			put_u64(counts, count_name(i), p->counts.value[i]);
	}
	json_object_object_add(o, "counts", counts);
	whole = node ? element_text_whole(node) : NULL;
	json_object_object_add(o, "report", whole ? json_tokener_parse(whole) : NULL);
	free(whole);
	return o;
}

static struct json_object *flow_json(const struct flow *f)
{
	struct json_object *o = json_object_new_object();
	const struct account a = account_of(f);

	put_text(o, "from", f->from->name);
	put_text(o, "to", f->to->name);
	put_text(o, "transport", f->transport->name);
	put_text(o, "address", *f->address ? f->address : NULL);
	put_bool(o, "known", a.known);
	put_u64(o, "sent", a.sent);
	put_u64(o, "received", a.received);
	put_u64(o, "lost", a.lost);
	json_object_object_add(o, "unaccounted", json_object_new_int64(a.unaccounted));
	return o;
}

static int print_json(const struct experiment *e, bool interrupted)
{
	struct json_object *o = json_object_new_object();
	struct json_object *parties = json_object_new_array(), *flows = json_object_new_array();

	put_text(o, "experiment", e->name);
	put_u64(o, "run", e->run);
	put_bool(o, "interrupted", interrupted);
	for (unsigned int i = 0; i < e->flows; i++)
		json_object_array_add(flows, flow_json(&e->flow[i]));
	json_object_object_add(o, "flows", flows);
	for (unsigned int i = 0; i < e->parties; i++)
		json_object_array_add(parties, party_json(&e->party[i]));
	json_object_object_add(o, "parties", parties);
	return json_finish(o);
}

static void print_text(const struct experiment *e)
{
	char how[32], why[1024];

	printf("experiment %s, run %" PRIu64 "\n\n", e->name, e->run);
	printf("%-20s %-20s %-9s %12s %12s %12s %12s\n", "FROM", "TO", "TRANSPORT", "SENT",
	       "RECEIVED", "LOST", "UNACCOUNTED");
	for (unsigned int i = 0; i < e->flows; i++) {
		const struct flow *f = &e->flow[i];
		const struct account a = account_of(f);

		printf("%-20s %-20s %-9s %12" PRIu64 " %12" PRIu64 " %12" PRIu64, f->from->name,
		       f->to->name, f->transport->name, a.sent, a.received, a.lost);
		if (a.known)
			printf(" %12" PRId64 "\n", a.unaccounted);
		else
			printf(" %12s\n", "not known");
	}
	printf("\n%-20s %-9s %s\n", "WHO", "OUTCOME", "REASON");
	for (unsigned int i = 0; i < e->parties; i++) {
		const struct party *p = &e->party[i];

		printf("%-20s %-9s %s\n", p->name, outcome(p, how, sizeof(how)),
		       SHOWN(reason(p, why, sizeof(why))));
	}
}

static int verdict(const struct experiment *e)
{
	int result = EXIT_OK;
	char how[32];

	for (unsigned int i = 0; i < e->parties; i++) {
		const struct party *p = &e->party[i];

		outcome(p, how, sizeof(how));
		/* a receiver misses what is to come when its detector was stopped before */
		if (!strcmp(how, "failed") && !p->detector && !p->failed)
			continue;
		if (!strcmp(how, "timeout"))
			return EXIT_TIMEOUT;
		if (!strcmp(how, "failed") || !strcmp(how, "killed") || !p->ended)
			return EXIT_FAILED;
		if (!strcmp(how, "data"))
			result = EXIT_DATA;
	}
	for (unsigned int i = 0; i < e->flows; i++) {
		const struct account a = account_of(&e->flow[i]);

		if (!a.known || a.lost || a.unaccounted)
			result = EXIT_DATA;
	}
	return result;
}

int report(struct experiment *e, const struct options *o, bool interrupted)
{
	const int result = verdict(e);

	if (!o->json || json_elsewhere())
		print_text(e);
	if (o->json && print_json(e, interrupted))
		return EXIT_FAILED;
	return result;
}
