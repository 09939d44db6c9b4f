package config

import "slices"

// Removed is a variable that was a setting once. A process that finds it set does not start: it would run with other
// bounds than its operator believes.
type Removed struct {
	Names   []string
	Instead string // what to do, after "NAME is no longer a setting: "
}

// removed lists the removed variables.
var removed = []Removed{
	{
		[]string{
			"BYTE_BUDGET_VISITOR", "BYTE_BUDGET_ADDRESS", "BYTE_BUDGET_APPLICATION", "BYTE_BUDGET_COMPANY",
			"RATE_LIMIT_TOKEN", "RATE_LIMIT_ADDRESS", "RATE_LIMIT_REGISTER", "RATE_LIMIT_IDEMPOTENCY_KEYS",
			"FILE_QUOTA_VISITOR", "FILE_QUOTA_APPLICATION", "FILE_QUOTA_COMPANY",
		},
		"choose LIMITS=small, medium or large",
	},
	{
		[]string{
			"RATE_LIMIT_VISITOR", "RATE_LIMIT_AUTH_FAILURES", "RATE_LIMIT_RECOVERY", "RATE_LIMIT_CONNECT",
			"RATE_LIMIT_SIGN_IN", "RATE_LIMIT_USER", "RATE_LIMIT_ACCOUNT",
			"MAX_UPLOADS", "MAX_UPLOADS_VISITOR", "MAX_UPLOADS_ADDRESS", "MAX_UPLOADS_APPLICATION", "MAX_UPLOADS_COMPANY",
			"MAX_SOCKETS_PER_VISITOR", "MAX_PENDING_CONNECTIONS", "MAX_PENDING_PER_ADDRESS", "MAX_FRAME_RATE",
			"HISTORY_MEMORY_BYTES",
		},
		"the bound is fixed (docs/security.md); LIMITS=none is for load tests",
	},
	{
		[]string{
			"UPLOAD_TIMEOUT", "PING_INTERVAL", "PING_TIMEOUT", "CONNECT_TIMEOUT", "BOT_WEBHOOK_ATTEMPTS",
			"WEBHOOK_CONCURRENCY", "WEBHOOK_ENDPOINT_CONCURRENCY", "WEBHOOK_WARN_AFTER",
		},
		"the value is fixed; unset it",
	},
	{[]string{"COMPRESS_FROM"}, "messages are not compressed; unset it"},
	{
		[]string{"LLM_PRICE_INPUT", "LLM_PRICE_OUTPUT"},
		"multiply parley_bot_llm_tokens_total by the price where it is shown",
	},
}

// RemovedVariables lists the variables that are no settings any more, and what to use instead.
func RemovedVariables() []Removed { return slices.Clone(removed) }

// stillSet returns a problem for each removed variable that is set.
func stillSet(getenv func(name string) string) []string {
	var problems []string
	for _, r := range removed {
		for _, name := range r.Names {
			if getenv(name) != "" {
				problems = append(problems, name+" is no longer a setting: "+r.Instead)
			}
		}
	}
	return problems
}
