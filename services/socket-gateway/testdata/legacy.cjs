// Clients of Socket.IO 2, as many as the environment says. They tell what happens to them like those of clients.mjs. The token is in the
// query: these clients have no auth.
const io = require("socket.io-client-v2");

const { GATEWAY_URL, TOKEN, TRANSPORTS, CLIENTS, FORCE_BASE64 } = process.env;

const say = (client, event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");

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
      say(client, "connect", { transport: engine.transport.name, sid: engine.id });
      return;
    }
    engine.once("upgrade", () => say(client, "connect", { transport: engine.transport.name, sid: engine.id }));
  });
  socket.on("error", (data) => say(client, "error", { data }));
  socket.on("connect_error", (err) => say(client, "connect_error", { message: err.message }));
  socket.on("message", (...args) => say(client, "message", { data: args[0] }));
  socket.on("disconnect", (reason) => say(client, "disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
