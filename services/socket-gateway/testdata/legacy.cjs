// Runs CLIENTS clients of Socket.IO 2. They print the same events as clients.mjs. The token is in the query, because these clients do not
// support auth.
const io = require("socket.io-client-v2");

const { GATEWAY_URL, TOKEN, TRANSPORTS, CLIENTS, FORCE_BASE64 } = process.env;

const report = (client, event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");

const transports = TRANSPORTS.split(",");

const sockets = Array.from({ length: Number(CLIENTS) }, (_, client) => {
  const socket = io(GATEWAY_URL + "/message", {
    query: { token: TOKEN },
    transports,
    forceNew: true,
    forceBase64: FORCE_BASE64 === "1",
    reconnectionDelay: 50,
    reconnectionDelayMax: 200,
  });
  socket.on("connect", () => {
    const { engine } = socket.io;
    if (engine.transport.name === transports[transports.length - 1]) {
      report(client, "connect", { transport: engine.transport.name, sid: engine.id });
      return;
    }
    engine.once("upgrade", () => report(client, "connect", { transport: engine.transport.name, sid: engine.id }));
  });
  socket.on("error", (data) => report(client, "error", { data }));
  socket.on("connect_error", (err) => report(client, "connect_error", { message: err.message }));
  socket.on("message", (...args) => report(client, "message", { data: args[0] }));
  socket.on("disconnect", (reason) => report(client, "disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
