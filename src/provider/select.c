/* SPDX-License-Identifier: BSD-3-Clause */
/* select.c -- selects the provider for an address, and finds the provider of a context. */
#include "provider/provider.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "provider/fault.h"

enum { WHY_LEN = 256 };

static const char *const ROLE_TEXT[] = {[PROVIDER_PASSIVE] = "local", [PROVIDER_ACTIVE] = "remote"};

static const char *select_env_choice(const char *var)
{
	const char *value = getenv(var);

	return value && *value ? value : "auto";
}

static const struct provider *select_verbs(const char *addr, enum provider_role role)
{
	char why[WHY_LEN] = "";

	if (provider_verbs.serves(addr, role, why, sizeof(why)))
		return &provider_verbs;
	LOG_ERROR("RPMA_PROVIDER=verbs cannot serve the %s address %s: %s; "
		  "unset RPMA_PROVIDER, or set it to softrnic, to go without hardware",
		  ROLE_TEXT[role], addr, why);
	return NULL;
}

static const struct provider *select_auto(const char *addr, enum provider_role role)
{
	char why[WHY_LEN] = "", why_soft[WHY_LEN] = "";

	if (provider_verbs.serves(addr, role, why, sizeof(why))) {
		LOG_NOTICE("provider verbs for the %s address %s: %s", ROLE_TEXT[role], addr, why);
		return &provider_verbs;
	}
	if (provider_softrnic.serves(addr, role, why_soft, sizeof(why_soft))) {
		LOG_NOTICE("provider softrnic for the %s address %s: %s; %s", ROLE_TEXT[role], addr,
			   why, why_soft);
		return &provider_softrnic;
	}
	LOG_ERROR("no provider for the %s address %s: %s; %s", ROLE_TEXT[role], addr, why,
		  why_soft);
	return NULL;
}

static const struct provider *select_provider(const char *choice, const char *var, const char *addr,
					      enum provider_role role)
{
	if (!strcmp(choice, "auto"))
		return select_auto(addr, role);
	if (!strcmp(choice, "verbs"))
		return select_verbs(addr, role);
	if (!strcmp(choice, "softrnic"))
		return &provider_softrnic;
	LOG_ERROR("%s=%s: no such provider; there are auto, verbs and softrnic", var, choice);
	return NULL;
}

static bool select_wants_faults(void)
{
	return !strcmp(select_env_choice("RPMA_PROVIDER"), "fault");
}

const struct provider *provider_named(const char *name)
{
	static const struct provider *const known[] = {&provider_verbs, &provider_softrnic};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i]->name))
			return select_wants_faults() ? provider_fault_around(known[i]) : known[i];
	return NULL;
}

const char *provider_names(void)
{
	return "verbs, softrnic";
}

const struct provider *provider_for_addr(const char *addr, enum provider_role role)
{
	const struct provider *inner;

	if (!select_wants_faults())
		return select_provider(select_env_choice("RPMA_PROVIDER"), "RPMA_PROVIDER", addr,
				       role);
	inner = select_provider(select_env_choice("RPMA_FAULT_INNER"), "RPMA_FAULT_INNER", addr,
				role);
	return inner ? provider_fault_around(inner) : NULL;
}

const struct provider *provider_of_context(struct ibv_context *ctx)
{
	const struct provider *prov =
		provider_softrnic.owns_context(ctx) ? &provider_softrnic : &provider_verbs;

	if (!select_wants_faults())
		return prov;
	fault_decorate_context(ctx);
	return provider_fault_around(prov);
}
