// Tests a server with the official client: node client.js <url> <websocket|polling|upgrade>
// It exits with 0 if all checks pass, and prints the failure otherwise.
const assert = require("node:assert");
const { io } = require("socket.io-client");

const [url, mode] = process.argv.slice(2);
const transports = mode === "upgrade" ? ["polling", "websocket"] : [mode];
const options = { transports, forceNew: true, reconnectionDelay: 50, reconnectionDelayMax: 100 };
const once = (emitter, event) => new Promise((resolve) => emitter.once(event, (...args) => resolve(args)));
const ask = (socket, ...event) => socket.timeout(20000).emitWithAck(...event); // rejects if the connection is lost
const disconnects = []; // printed with a failure, because a lost connection may be its cause

// connect opens a new connection. It collects the reasons of disconnects in socket.reasons.
function connect(namespace, auth) {
  const socket = io(url + namespace, { ...options, auth });
  socket.reasons = [];
  socket.on("disconnect", (reason, details) => {
    socket.reasons.push(reason);
    const responseText = details?.context?.responseText; // the failed request of the polling transport
    const why = [details?.message, details?.description, responseText].filter(Boolean);
    disconnects.push([`${namespace} ${JSON.stringify(auth)}: ${reason}`, ...why].join(", "));
  });
  return socket;
}

async function rejected() {
  const socket = connect("/message", { token: "bad" });
  const [err] = await once(socket, "connect_error");
  assert.strictEqual(err.message, "Unauthorized");
  assert.deepStrictEqual(err.data, { code: "UNAUTHORIZED" });
  socket.disconnect();

  const unknown = connect("/unknown");
  const [invalid] = await once(unknown, "connect_error");
  assert.strictEqual(invalid.message, "Invalid namespace");
  unknown.disconnect();
}

async function conversation() {
  const socket = connect("/message", { token: "good" });
  const first = once(socket, "welcome");
  await once(socket, "connect");
  assert.deepStrictEqual(await first, [{ to: "room" }]);
  if (mode === "upgrade" && socket.io.engine.transport.name !== "websocket") {
    await once(socket.io.engine, "upgrade");
  }
  assert.strictEqual(socket.io.engine.transport.name, mode === "polling" ? "polling" : "websocket");

  const text = "héllo \u{1F600} ".repeat(2000);
  assert.deepStrictEqual(await ask(socket, "echo", text, { deep: [1, null, true] }), text);
  const bytes = Buffer.from([1, 2, 3, 255]);
  const back = once(socket, "echoed");
  socket.emit("echo-event", bytes, { nested: Buffer.alloc(70000, 7) }, "end");
  const [a, b, c] = await back;
  assert.deepStrictEqual(Buffer.from(a), bytes);
  assert.deepStrictEqual(Buffer.from(b.nested), Buffer.alloc(70000, 7));
  assert.strictEqual(c, "end");

  socket.on("question", (n, answer) => answer(n * 2, Buffer.from([n])));
  assert.deepStrictEqual(await ask(socket, "ask-me", 21), { got: 42, bytes: 1 });

  const received = [];
  const all = new Promise((resolve) => socket.on("n", (n) => received.push(n) === 500 && resolve()));
  socket.emit("count", 500);
  await all;
  assert.deepStrictEqual(received, [...Array(500).keys()]);

  const other = socket.io.socket("/other"); // over the same connection; it connects by itself, and a second CONNECT would violate the protocol
  await once(other, "connect");
  other.disconnect();
  assert.strictEqual(await ask(socket, "echo", "still here"), "still here");
  assert.deepStrictEqual(socket.reasons, []);

  const reconnected = once(socket, "connect"); // the client reconnects after a lost connection
  socket.emit("drop-me");
  await reconnected;
  await (socket.emit("disconnect-me"), once(socket, "disconnect"));
  assert.deepStrictEqual(socket.reasons, ["transport close", "io server disconnect"]);
  socket.disconnect();
}

async function heartbeat() {
  const socket = connect("/message", { token: "good" });
  await once(socket, "connect");
  for (let i = 0; i < 3; i++) await once(socket.io, "ping");
  assert.strictEqual(socket.connected, true);
  assert.deepStrictEqual(socket.reasons, []);
  socket.disconnect();
}

function fail(code, err) {
  console.error(err);
  for (const line of disconnects) console.error("disconnected:", line);
  process.exit(code);
}

Promise.all([rejected(), conversation(), heartbeat()]).then(
  () => process.exit(0),
  (err) => fail(1, err)
);
setTimeout(() => fail(2, "timed out"), 40000);
