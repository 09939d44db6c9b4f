// The official client, told by the environment what to do. It writes what happens to it as JSON lines, and ends with its
// standard input.
import { createInterface } from "node:readline";
import { io } from "socket.io-client";

const { GATEWAY_URL, TOKEN, TRANSPORT } = process.env;

const say = (event, rest) => process.stdout.write(JSON.stringify({ event, ...rest }) + "\n");

const socket = io(GATEWAY_URL + "/message", {
  auth: { token: TOKEN },
  transports: [TRANSPORT],
  reconnectionDelay: 50,
  reconnectionDelayMax: 200,
});

socket.on("connect", () => say("connect", { id: socket.id, transport: socket.io.engine.transport.name }));
socket.on("connect_error", (err) => say("connect_error", { message: err.message, data: err.data }));
socket.on("message", (data) => say("message", { data }));
socket.on("disconnect", (reason) => say("disconnect", { reason }));

for (const event of ["typing", "read", "unread"]) socket.on(event, (data) => say(event, { data }));

// Each line of the standard input is an event to emit, and its acknowledgement is told.
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => socket.emit(...JSON.parse(line), (answer) => say("ack", { data: answer })));
lines.on("close", () => {
  socket.disconnect();
  process.exit(0);
});
