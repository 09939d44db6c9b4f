// The official socket.io-client under remote control: one JSON command a line on stdin, one JSON event a line on stdout.
// It ends when stdin does.
//
//   {"op":"open","id":"a","url":"http://...","token":"...","transports":["websocket"]}
//   {"op":"emit","id":"a","event":"name","args":[...],"ack":true}
//   {"op":"close","id":"a"}

import { createInterface } from 'node:readline';
import { io } from 'socket.io-client';

const sockets = new Map();

function say(id, kind, more = {}) {
  process.stdout.write(JSON.stringify({ id, kind, ...more }) + '\n');
}

const operations = {
  open({ id, url, token, transports }) {
    const socket = io(`${url}/message`, {
      auth: token === undefined ? {} : { token },
      transports,
      forceNew: true,
      reconnectionDelay: 100,
      reconnectionDelayMax: 500,
    });
    sockets.set(id, socket);
    socket.io.on('open', () => socket.io.engine.once('upgrade', (t) => say(id, 'upgrade', { transport: t.name })));
    socket.on('connect', () => say(id, 'connect', { transport: socket.io.engine.transport.name }));
    socket.on('connect_error', (err) => say(id, 'connect_error', { message: err.message, data: err.data ?? null, active: socket.active }));
    socket.on('disconnect', (reason) => say(id, 'disconnect', { message: reason }));
    socket.onAny((event, ...args) => say(id, 'event', { event, args }));
  },
  emit({ id, event, args, ack }) {
    sockets.get(id).emit(event, ...args, ...(ack ? [(data) => say(id, 'ack', { data })] : []));
  },
  close({ id }) {
    sockets.get(id)?.disconnect();
    sockets.delete(id);
    say(id, 'closed');
  },
};

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const command = JSON.parse(line);
  operations[command.op](command);
});
lines.on('close', () => process.exit(0));
