// Runs the official socket.io-client, also its version 2: it reads one JSON command per line from stdin, and prints one JSON event per line
// on stdout. It exits when stdin closes.
//
//   {"op":"open","id":"a","url":"http://...","token":"...","transports":["websocket"],"legacy":true}
//   {"op":"emit","id":"a","event":"name","args":[...],"ack":true}
//   {"op":"drop","id":"a"}       ends the connection, if there is one; the client stays away
//   {"op":"reconnect","id":"a"}  with the session of before
//   {"op":"close","id":"a"}

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { io } from 'socket.io-client';

const sockets = new Map();

function report(id, kind, more = {}) {
  process.stdout.write(JSON.stringify({ id, kind, ...more }) + '\n');
}

const reconnecting = { forceNew: true, reconnectionDelay: 100, reconnectionDelayMax: 500 };

function openCurrent({ id, url, token, transports }) {
  const socket = io(`${url}/message`, { auth: token === undefined ? {} : { token }, transports, ...reconnecting });
  socket.on('connect_error', (err) => report(id, 'connect_error', { message: err.message, data: err.data ?? null, active: socket.active }));
  socket.onAny((event, ...args) => report(id, 'event', { event, args }));
  return socket;
}

/** Opens a client of version 2: it sends its token in the query, never recovers a session, and does not connect again after a refusal. */
function openLegacy({ id, url, token, transports }) {
  const legacy = createRequire(import.meta.url)('socket.io-client-v2');
  const socket = legacy(`${url}/message`, { query: { token }, transports, ...reconnecting });
  socket.on('connect_error', (err) => report(id, 'connect_error', { message: err.message, active: true }));
  socket.on('error', (refusal) => {
    const isRefusal = !(refusal instanceof Error); // otherwise the connection broke
    if (isRefusal) report(id, 'connect_error', { message: refusal.message ?? refusal, active: false });
  });
  for (const event of ['message', 'message.part']) socket.on(event, (...args) => report(id, 'event', { event, args }));
  return socket;
}

const operations = {
  open(command) {
    const { id } = command;
    const socket = command.legacy ? openLegacy(command) : openCurrent(command);
    sockets.set(id, socket);
    socket.io.on('open', () => socket.io.engine.once('upgrade', (t) => report(id, 'upgrade', { transport: t.name })));
    socket.on('connect', () => report(id, 'connect', { transport: socket.io.engine.transport.name, recovered: !!socket.recovered }));
    socket.on('disconnect', (reason) => report(id, 'disconnect', { message: reason }));
  },
  emit({ id, event, args, ack }) {
    sockets.get(id).emit(event, ...(args ?? []), ...(ack ? [(data) => report(id, 'ack', { data })] : []));
  },
  drop({ id }) {
    const { connected, io: manager } = sockets.get(id);
    if (!connected) return; // closed while it opens, a client stays "opening", and never tries again
    manager.reconnection(false);
    manager.engine.close();
  },
  reconnect({ id }) {
    const socket = sockets.get(id);
    socket?.io.reconnection(true);
    socket?.connect();
  },
  close({ id }) {
    sockets.get(id)?.disconnect();
    sockets.delete(id);
    report(id, 'closed');
  },
};

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const command = JSON.parse(line);
  operations[command.op](command);
});
lines.on('close', () => process.exit(0));
