// Drives a server with the official client: node client.js <url> <websocket|polling|upgrade>
// Exits 0 if everything came as it should; prints what did not.
const assert = require("node:assert");
const { io } = require("socket.io-client");

const [url, mode] = process.argv.slice(2);
const transports = mode === "upgrade" ? ["polling", "websocket"] : [mode];
const options = { transports, forceNew: true, reconnectionDelay: 50, reconnectionDelayMax: 100 };
const once = (emitter, event) => new Promise((resolve) => emitter.once(event, (...args) => resolve(args)));

async function refused() {
  const socket = io(url + "/message", { ...options, auth: { token: "bad" } });
  const [err] = await once(socket, "connect_error");
  assert.strictEqual(err.message, "Unauthorized");
  assert.deepStrictEqual(err.data, { code: "UNAUTHORIZED" });
  socket.disconnect();

  const unknown = io(url + "/unknown", options);
  const [invalid] = await once(unknown, "connect_error");
  assert.strictEqual(invalid.message, "Invalid namespace");
  unknown.disconnect();
}

async function conversation() {
  const socket = io(url + "/message", { ...options, auth: { token: "good" } });
  const first = once(socket, "welcome");
  await once(socket, "connect");
  assert.deepStrictEqual(await first, [{ to: "room" }]);
  if (mode === "upgrade" && socket.io.engine.transport.name !== "websocket") {
    await once(socket.io.engine, "upgrade");
  }
  assert.strictEqual(socket.io.engine.transport.name, mode === "polling" ? "polling" : "websocket");

  const text = "héllo \u{1F600} ".repeat(2000);
  assert.deepStrictEqual(await socket.timeout(5000).emitWithAck("echo", text, { deep: [1, null, true] }), text);
  const bytes = Buffer.from([1, 2, 3, 255]);
  const back = once(socket, "echoed");
  socket.emit("echo-event", bytes, { nested: Buffer.alloc(70000, 7) }, "end");
  const [a, b, c] = await back;
  assert.deepStrictEqual(Buffer.from(a), bytes);
  assert.deepStrictEqual(Buffer.from(b.nested), Buffer.alloc(70000, 7));
  assert.strictEqual(c, "end");

  socket.on("question", (n, answer) => answer(n * 2, Buffer.from([n])));
  assert.deepStrictEqual(await socket.timeout(5000).emitWithAck("ask-me", 21), { got: 42, bytes: 1 });

  const received = [];
  const all = new Promise((resolve) => socket.on("n", (n) => received.push(n) === 500 && resolve()));
  socket.emit("count", 500);
  await all;
  assert.deepStrictEqual(received, [...Array(500).keys()]);

  const other = socket.io.socket("/other"); // over the same connection
  other.connect();
  await once(other, "connect");
  other.disconnect();
  assert.strictEqual(socket.connected, true);

  const reconnected = once(socket, "connect"); // a lost connection comes back by itself
  socket.emit("drop-me");
  await reconnected;
  const [reason] = await (socket.emit("disconnect-me"), once(socket, "disconnect"));
  assert.strictEqual(reason, "io server disconnect");
  socket.disconnect();
}

async function heartbeat() {
  const socket = io(url + "/message", { ...options, auth: { token: "good" } });
  await once(socket, "connect");
  for (let i = 0; i < 3; i++) await once(socket.io, "ping");
  assert.strictEqual(socket.connected, true);
  socket.disconnect();
}

Promise.all([refused(), conversation(), heartbeat()]).then(
  () => process.exit(0),
  (err) => {
    console.error(err);
    process.exit(1);
  }
);
setTimeout(() => {
  console.error("timed out");
  process.exit(2);
}, 40000);
