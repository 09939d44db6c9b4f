// Runs CLIENTS official clients. They print their events as JSON lines with the number of the client, and exit when stdin closes.
// GATEWAY_URL may be the address of a load balancer for several gateways.
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKEN, TRANSPORTS, CLIENTS } = process.env;

const report = (client, event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");

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
      report(client, "connect", { transport: engine.transport.name, sid: engine.id });
      return;
    }
    engine.once("upgrade", () => report(client, "connect", { transport: engine.transport.name, sid: engine.id }));
  });
  socket.on("connect_error", (err) => report(client, "connect_error", { message: err.message, data: err.data }));
  socket.on("message", (data) => report(client, "message", { data }));
  socket.on("disconnect", (reason) => report(client, "disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
