// Command realtime measures the Socket gateway against the gateway that one would write with the official Node packages (../peer), in
// ratios of one run.
//
// redis-server, nats-server and the gateways are processes of their own, new for every stage; the load generator is this one. All
// contenders get the very same load, one after the other:
//
//	handshake  websocket, visitor token, CONNECT and join of many connections; memory per idle connection
//	paced      one visitor a room, two gateways, JetStream -> Redis -> client: cost, latency, the highest rate, overload
//	broadcast  many connections in one room, against a bare loop that writes prebuilt frames
//	redis      bytes that Redis sends for a reply, with one, two and three gateways
//	growth     cost per delivery and memory per connection as connections grow
//	readers    what one, two and three gateways use for the same load
//	parts      parts of streamed answers, one visitor a room, two gateways: cost and the highest rate; Parley only
//
// Every reply carries a mark: trial, room, sequence in its room, and the moment for which its publication was planned (not the one at which
// it happened, so that a generator that falls behind cannot flatter the latency). From the marks each delivery is told to be in order,
// out of order, doubled or astray; what never came is lost, and counts as endless latency.
//
// Reading order: main.go (the rows), stage.go (what runs), trial.go and publish.go (a load of replies or parts and its tally), fleet.go and client.go (the
// connections, read by one loop over epoll so that the generator takes little from the two sides' cores), report.go (the tables).
package main
