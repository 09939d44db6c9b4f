// POST /message/send written with Fastify and nats.js, in one process: it looks up token and chat in memory, validates the
// body with a compiled JSON schema, publishes the same event with the same headers as our client-api, and responds after
// the JetStream ack. It has no limits, no idempotency and no validation by type. The benchmark compares client-api with it.
//
// It reads NATS_URL, HTTP_ADDR, OPS_ADDR (/readyz only), TOKEN, COMPANY_ID and CHATS (ids, separated by commas) from the
// environment.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { jetstream } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import fastify from "fastify";

const { NATS_URL, HTTP_ADDR, OPS_ADDR, TOKEN, COMPANY_ID, CHATS } = process.env;
const companies = new Map([[TOKEN, COMPANY_ID]]);
const chats = new Map(CHATS.split(",").map((id) => [id, { id, companyId: COMPANY_ID, windowExpiresAt: Date.now() + 24 * 3600 * 1000 }]));

const body = {
  type: "object",
  required: ["chatId", "type", "data"],
  properties: {
    chatId: { type: "string", minLength: 36, maxLength: 36 },
    type: { enum: ["TEXT"] },
    data: { type: "object", required: ["text"], properties: { text: { type: "string", minLength: 1, maxLength: 4096 } } },
  },
};
const response = {
  200: {
    type: "object",
    properties: { message: { type: "string" }, messageId: { type: "string" }, windowExpiresAt: { type: "string" } },
  },
};

const nats = await connect({ servers: NATS_URL });
const js = jetstream(nats);
const app = fastify();

app.post("/message/send", { schema: { body, response } }, async (request, reply) => {
  const companyId = companies.get(request.headers["x-access-token"]);
  if (!companyId) return reply.code(401).send({ code: "UNAUTHORIZED" });
  const chat = chats.get(request.body.chatId);
  if (!chat || chat.companyId !== companyId) return reply.code(404).send({ code: "CHAT_NOT_FOUND" });
  const now = new Date();
  if (now.getTime() > chat.windowExpiresAt) return reply.code(400).send({ code: "CHAT_TOO_OLD" });
  const id = randomUUID();
  const time = now.toISOString();
  const message = { id, createdAt: time, type: request.body.type, data: request.body.data, nameOfSender: "Support", isFromSupport: true };
  const h = headers();
  h.set("Nats-Msg-Id", id);
  h.set("ce-id", id);
  h.set("ce-type", "parley.events.v1.CompanyMessageAccepted");
  h.set("ce-source", "/client-api");
  h.set("ce-time", time);
  h.set("ce-specversion", "1.0");
  h.set("ce-datacontenttype", "application/json");
  await js.publish(`chat.in.message.${companyId}.${chat.id}`, JSON.stringify({ companyId, chatId: chat.id, message }), { headers: h });
  return { message: "Message sent successfully", messageId: id, windowExpiresAt: new Date(chat.windowExpiresAt).toISOString() };
});

function at(addr) {
  const colon = addr.lastIndexOf(":");
  return { host: addr.slice(0, colon), port: Number(addr.slice(colon + 1)) };
}

await app.listen({ ...at(HTTP_ADDR), backlog: 4096 });
createServer((_, res) => res.end("ready")).listen(at(OPS_ADDR));
