// Runs the official server as a second node: node peer.js <redis port> <classic|sharded>
// It prints its HTTP port, then executes commands from stdin, one JSON array per line, and prints the results.
const { createServer } = require("http");
const { Server } = require("socket.io");
const { createAdapter, createShardedAdapter } = require("@socket.io/redis-adapter");
const Redis = require("ioredis");
const readline = require("readline");

const [port, mode] = process.argv.slice(2);
const pub = new Redis(Number(port), "127.0.0.1");
const sub = pub.duplicate();
const adapter = mode === "sharded" ? createShardedAdapter(pub, sub) : createAdapter(pub, sub);
const http = createServer();
const io = new Server(http, { adapter });
const nsp = io.of("/message");
const subscribed = () => sub.ping(); // Redis answers after the subscriptions, for which the adapter does not wait
const report = (...values) => console.log(JSON.stringify(values));

nsp.on("connection", async (socket) => {
  socket.join(socket.handshake.auth.room);
  await subscribed();
  socket.emit("joined");
});
nsp.on("to-servers", (...args) => {
  const ack = args[args.length - 1];
  if (typeof ack === "function") ack("node");
  report("server-side", args[0]);
});

const commands = {
  emit: (room, ...args) => nsp.to(room).emit(...args),
  emitBinary: (room) => nsp.to(room).emit("bin", Buffer.from([9, 8]), { b: Buffer.from([7]) }),
  emitAll: (...args) => nsp.emit(...args),
  emitAck: async (room, ...args) => {
    try {
      report("acks", await nsp.to(room).timeout(3000).emitWithAck(...args));
    } catch (e) {
      report("acks", e.message);
    }
  },
  fetch: async (room) => {
    const sockets = await nsp.in(room).fetchSockets();
    report("fetched", sockets.map((s) => [s.id, [...s.rooms], s.data, typeof s.handshake.auth]));
  },
  allRooms: async () => report("rooms", mode === "sharded" ? [] : [...(await nsp.adapter.allRooms())]),
  join: (room, other) => nsp.in(room).socketsJoin(other),
  leave: (room, other) => nsp.in(room).socketsLeave(other),
  disconnect: (room) => nsp.in(room).disconnectSockets(),
  serverSide: (...args) => nsp.serverSideEmit(...args),
  serverSideAck: async (...args) => {
    try {
      report("answers", await nsp.serverSideEmitWithAck(...args));
    } catch (e) {
      report("answers", e.message);
    }
  },
};

http.listen(0, "127.0.0.1", async () => {
  await subscribed();
  report("listening", http.address().port);
});
readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const [name, ...args] = JSON.parse(line);
    commands[name](...args);
  })
  .on("close", () => process.exit(0));
