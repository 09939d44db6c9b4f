// Scale measures the effect of replicas: processors that share the visitors' messages by partition, with a webhook that
// takes half a second instead of a bot, so that two cores suffice.
//
// It starts the servers and the processors built by `make build`, acts as the visitors and the webhook, and prints one
// table: concurrent answers, the gain of two and four processors, the distribution of partitions after each change,
// visitors' waiting time when a processor is killed, stopped or replaced, and the effect of one hanging answer on other
// visitors. The stream REPLIES, from which gateways deliver, is checked for each answer exactly once, in its visitor's
// order.
//
// crowd.go has the visitors, webhook.go answers, world.go starts and stops processes, measure.go measures, report.go
// prints. The row "readers" of bench/realtime measures the cost of more gateways; `make bench-scale` runs both.
package main
