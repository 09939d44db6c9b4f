// Connects to a visitor's chat on several gateways with the official client, sends a message, and expects the answer on each gateway.
//
//   node scripts/chat.mjs WIDGET_BASE_URL TOKEN SOCKET_URL...
import { io } from "socket.io-client";

const [widget, token, ...urls] = process.argv.slice(2);
const timeout = setTimeout(() => fail("no answer on every gateway within 60 s"), 60_000);

function fail(text) {
  console.error(text);
  process.exit(1);
}

const sockets = urls.map((url) => io(`${url}/message`, { auth: { token }, transports: ["websocket"], forceNew: true }));
await Promise.all(sockets.map((socket) => new Promise((joined) => socket.once("connect", joined))));
const answers = sockets.map((socket) => new Promise((answered) => socket.once("message", answered)));
const response = await fetch(`${widget}/message`, {
  method: "POST",
  headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
  body: JSON.stringify({ type: "TEXT", data: { text: "menu" } }),
});
if (response.status !== 201) fail(`POST /message: ${response.status} ${await response.text()}`);
const ids = new Set((await Promise.all(answers)).map((message) => message.id));
if (ids.size !== 1) fail(`the gateways delivered different messages: ${[...ids]}`);
console.log(`${sockets.length} gateways delivered ${[...ids]}`);
clearTimeout(timeout);
sockets.forEach((socket) => socket.close());
