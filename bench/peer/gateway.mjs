// A Socket gateway written with the official Node packages: socket.io with its Redis adapter, visitor tokens verified
// in the middleware of the namespace, and replies read from JetStream by one durable consumer that all gateways share.
// The realtime benchmark compares our gateway with it, so it follows the official advice on performance and memory, and
// does nothing else.
//
// It reads these settings of the Socket gateway from the environment: HTTP_ADDR, OPS_ADDR (/readyz only), NATS_URL, REDIS_URL,
// JWKS_URL, REDIS_SHARDED.

import { createPublicKey, verify } from "node:crypto";
import { createServer } from "node:http";
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createAdapter, createShardedAdapter } from "@socket.io/redis-adapter";
import { Redis } from "ioredis";
import { Server } from "socket.io";

const CONSUMER = "socket-gateway";

/** Returns the public keys of a JWKS, by key id. */
async function fetchKeys(url) {
  const { keys } = await (await fetch(url)).json();
  return new Map(keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: "jwk" })]));
}

/** Returns the claims of a visitor token; throws if the token is invalid. */
function verifyToken(token, keys) {
  const [head, body, signature] = token.split(".");
  const { alg, kid } = JSON.parse(Buffer.from(head, "base64url"));
  const key = keys.get(kid);
  if (alg !== "EdDSA" || !key) throw new Error("unknown key");
  if (!verify(null, Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"))) throw new Error("bad signature");
  const claims = JSON.parse(Buffer.from(body, "base64url"));
  if (claims.iss !== "parley" || ![claims.aud].flat().includes("parley-visitor")) throw new Error("not a visitor token");
  if (!(claims.exp * 1000 > Date.now())) throw new Error("expired");
  return claims;
}

function unauthorized() {
  const error = new Error("Unauthorized");
  error.data = { code: "UNAUTHORIZED" };
  return error;
}

/** Opens the namespace for visitors. Each visitor joins their own room. */
function openNamespace(io, keys) {
  const visitors = io.of("/message");
  visitors.use((socket, next) => {
    try {
      socket.data.claims = verifyToken(socket.handshake.auth.token, keys);
      next();
    } catch {
      next(unauthorized());
    }
  });
  visitors.on("connection", (socket) => {
    const { appId, sub } = socket.data.claims;
    socket.join(`${appId}-${sub}`);
  });
  return visitors;
}

/** Passes each reply of the stream to emit, on one of the gateways. */
async function consumeReplies(url, emit) {
  const nc = await connect({ servers: url });
  const manager = await jetstreamManager(nc);
  await manager.consumers.add("REPLIES", { durable_name: CONSUMER, ack_policy: AckPolicy.Explicit, max_ack_pending: 1000 });
  const consumer = await jetstream(nc).consumers.get("REPLIES", CONSUMER);
  await consumer.consume({
    max_messages: 500,
    callback: (m) => {
      const { appId, chatUserId, chatId, message } = m.json();
      emit(`${appId}-${chatUserId}`, { ...message, chatId });
      m.ack();
    },
  });
}

function listen(server, addr) {
  const at = addr.lastIndexOf(":");
  return new Promise((resolve) => server.listen({ host: addr.slice(0, at), port: Number(addr.slice(at + 1)), backlog: 4096 }, resolve));
}

const { HTTP_ADDR, OPS_ADDR, NATS_URL, REDIS_URL, JWKS_URL, REDIS_SHARDED } = process.env;
const publisher = new Redis(REDIS_URL);
const adapter = REDIS_SHARDED === "true" ? createShardedAdapter : createAdapter;

const http = createServer();
const io = new Server(http, { serveClient: false, adapter: adapter(publisher, publisher.duplicate()) });
// Drops the handshake's HTTP request, as the documentation advises to save memory.
io.engine.on("connection", (connection) => (connection.request = null));

const visitors = openNamespace(io, await fetchKeys(JWKS_URL));
await consumeReplies(NATS_URL, (room, record) => visitors.to(room).emit("message", record));
await listen(http, HTTP_ADDR);
await listen(createServer((req, res) => res.end("ready")), OPS_ADDR);
