// Runs the official client, configured by environment variables. It prints its events as JSON lines, and exits when stdin closes.
import { createInterface } from "node:readline";
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKEN, TRANSPORT } = process.env;

const report = (event, rest) => process.stdout.write(JSON.stringify({ event, ...rest }) + "\n");

const socket = io(GATEWAY_URL + "/message", {
  auth: { token: TOKEN },
  transports: [TRANSPORT],
  reconnectionDelay: 50,
  reconnectionDelayMax: 200,
});

socket.on("connect", () => report("connect", { id: socket.id, transport: socket.io.engine.transport.name }));
socket.on("connect_error", (err) => report("connect_error", { message: err.message, data: err.data }));
socket.on("message", (data) => report("message", { data }));
socket.on("disconnect", (reason) => report("disconnect", { reason }));

for (const event of ["typing", "read", "unread"]) socket.on(event, (data) => report(event, { data }));

// Each line of stdin is an event to emit. Its acknowledgement is printed.
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => socket.emit(...JSON.parse(line), (answer) => report("ack", { data: answer })));
lines.on("close", () => {
  socket.disconnect();
  process.exit(0);
});
