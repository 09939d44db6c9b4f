// Scale measures what replicas bring: processors that share the visitors' messages by partition, with a webhook that takes half a
// second in the bot's place, so that two cores suffice for all of it.
//
// It starts the engines and the processors that `make build` made, is the visitors and the webhook itself, and prints one table: how
// many answers are given at once, what two and four processors bring, how the partitions are spread after each change, what visitors
// wait for when a processor is killed, stopped or replaced, and what one visitor whose answer hangs does to the others. What is read from
// the stream REPLIES is what gateways pass on: each answer is looked for there once, in its visitor's order.
//
// crowd.go are the visitors, webhook.go answers, world.go starts and stops, measure.go measures, report.go prints. What a gateway more
// costs the row "readers" of deploy/bench/realtime measures; `make bench-scale` runs both.
package main
