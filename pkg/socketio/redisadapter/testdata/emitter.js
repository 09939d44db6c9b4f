// Emits with the official emitter: node emitter.js <redis port> <room> <socket id> <id to disconnect>
const { Emitter } = require("@socket.io/redis-emitter");
const Redis = require("ioredis");

const [port, room, id, disconnectId] = process.argv.slice(2);
const client = new Redis(Number(port), "127.0.0.1");

async function main() {
  const io = new Emitter(client).of("/message");
  io.to(room).emit("one", { text: "héllo", n: [1, -2, 3.5, null, true] }, 2 ** 53);
  io.to(room).to("elsewhere").except(id).emit("two", new Date(0), undefined);
  io.to(id).emit("private", Buffer.from([1, 2, 3]), { nested: Buffer.from([4]) });
  io.emit("all");
  io.in(room).socketsJoin(["late", 42]);
  io.to("late").emit("late"); // not asserted, because the join may take effect later
  io.in(disconnectId).disconnectSockets();
  await client.quit();
}
main();
