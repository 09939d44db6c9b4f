// Command realtime compares the Socket gateway with a gateway written with the official Node packages (../peer), as
// ratios within one run.
//
// redis-server, nats-server and the gateways are separate processes, new for every stage; the load generator is this
// process. All contenders get the same load, one after the other:
//
//	handshake  websocket, visitor token, CONNECT and join of many connections; memory per idle connection
//	paced      one visitor a room, two gateways, JetStream -> Redis -> client: cost, latency, the highest rate, overload
//	broadcast  many connections in one room, against a bare loop that writes prebuilt frames
//	redis      bytes that Redis sends for a reply, with one, two and three gateways
//	growth     cost per delivery and memory per connection as connections grow
//	readers    what one, two and three gateways use for the same load
//	parts      parts of streamed answers, one visitor a room, two gateways: cost and the highest rate; Parley only
//
// Every reply carries a mark: trial, room, sequence in its room, and the time for which its publication was planned
// (not the actual time, so that a generator that falls behind cannot improve the latency). From the marks each delivery
// is classified as in order, out of order, doubled or astray; missing ones are lost, and count as infinite latency.
//
// Reading order: main.go (the rows), stage.go (the processes), trial.go and publish.go (a load of replies or parts and
// its tally), pool.go and client.go (the connections, read by one epoll loop so that the generator uses few of the
// cores), report.go (the tables).
package main
