// Official clients, one for each token, at one address, with no code for coming back. They write what happens to them as JSON
// lines, each with its number, and end with their standard input.
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKENS, TRANSPORTS } = process.env;

const sockets = JSON.parse(TOKENS).map((token, client) => {
  const say = (event, rest) => process.stdout.write(JSON.stringify({ client, event, ...rest }) + "\n");
  const socket = io(GATEWAY_URL + "/message", {
    auth: { token },
    transports: TRANSPORTS.split(","),
    forceNew: true,
    reconnectionDelay: 50,
    reconnectionDelayMax: 300,
    timeout: 5000,
  });
  socket.on("connect", () => say("connect", { recovered: socket.recovered }));
  socket.on("connect_error", (err) => say("connect_error", { message: err.message, active: socket.active }));
  socket.on("message", (message, offset) => say("message", { n: message.data.n, offset }));
  socket.on("disconnect", (reason) => say("disconnect", { reason }));
  return socket;
});

process.stdin.resume();
process.stdin.on("end", () => {
  for (const socket of sockets) socket.disconnect();
  process.exit(0);
});
