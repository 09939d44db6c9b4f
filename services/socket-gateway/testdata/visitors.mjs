// Runs one official client per token, without custom code for recovery. They print their events as JSON lines with the number of the
// client, and exit when stdin closes.
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKENS, TRANSPORTS } = process.env;

const sockets = JSON.parse(TOKENS).map((token, client) => {
  const report = (event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");
  const socket = io(GATEWAY_URL + "/message", {
    auth: { token },
    transports: TRANSPORTS.split(","),
    forceNew: true,
    reconnectionDelay: 50,
    reconnectionDelayMax: 300,
    timeout: 5000,
  });
  socket.on("connect", () => report("connect", { recovered: socket.recovered }));
  socket.on("connect_error", (err) => report("connect_error", { message: err.message, active: socket.active }));
  socket.on("message", (message, offset) => report("message", { n: message.data.n, offset }));
  socket.on("disconnect", (reason) => report("disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
