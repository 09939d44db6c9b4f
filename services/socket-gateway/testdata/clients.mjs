// Official clients, as many as the environment says, at one address. They write what happens to them as JSON lines, each with its
// number, and end with their standard input. GATEWAY_URL is an address behind which there may be several gateways.
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKEN, TRANSPORTS, CLIENTS } = process.env;

const say = (client, event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");

const sockets = Array.from({ length: Number(CLIENTS) }, (_, client) => {
  const socket = io(GATEWAY_URL + "/message", {
    auth: { token: TOKEN },
    transports: TRANSPORTS.split(","),
    forceNew: true,
    reconnectionDelay: 50,
    reconnectionDelayMax: 200,
  });
  socket.on("connect", () => {
    const { engine } = socket.io;
    if (engine.transport.name === TRANSPORTS.split(",").at(-1)) {
      say(client, "connect", { transport: engine.transport.name, sid: engine.id });
      return;
    }
    engine.once("upgrade", () => say(client, "connect", { transport: engine.transport.name, sid: engine.id }));
  });
  socket.on("connect_error", (err) => say(client, "connect_error", { message: err.message, data: err.data }));
  socket.on("message", (data) => say(client, "message", { data }));
  socket.on("disconnect", (reason) => say(client, "disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
