import { Emitter } from '@socket.io/component-emitter';

// Replaces socket.io-parser in the official client. It handles the same packets (Socket.IO protocol 5) except binary
// ones, which the gateway does not send.

export enum PacketType {
  CONNECT,
  DISCONNECT,
  EVENT,
  ACK,
  CONNECT_ERROR,
  BINARY_EVENT,
  BINARY_ACK,
}

export interface Packet {
  type: number;
  nsp: string;
  id?: number | undefined;
  data?: unknown;
}

/** Event names reserved by the client. A packet from the server with one of them is invalid. */
const RESERVED = ['connect', 'connect_error', 'disconnect', 'disconnecting', 'newListener', 'removeListener'];

export class Encoder {
  encode({ type, nsp, id, data }: Packet): string[] {
    return [type + (nsp && nsp !== '/' ? nsp + ',' : '') + (id ?? '') + (data == null ? '' : JSON.stringify(data))];
  }
}

export class Decoder extends Emitter<Record<string, never>, Record<string, never>, { decoded(p: Packet): void }> {
  /** Decodes one packet. Throws if the text is invalid; the Manager then closes the connection. */
  add(text: string): void {
    const parts = /^([0-4])(?:(\/[^,]*),?)?(\d*)(.*)$/s.exec(text);
    if (!parts) throw new Error('unknown packet type');
    const [, type, nsp, id, json] = parts;
    const p: Packet = { type: Number(type), nsp: nsp || '/' };
    if (id) p.id = Number(id);
    if (json) {
      p.data = JSON.parse(json);
      if (!valid(p)) throw new Error('invalid payload');
    }
    this.emitReserved('decoded', p);
  }

  destroy(): void {}
}

function valid({ type, data }: Packet): boolean {
  switch (type) {
    case PacketType.DISCONNECT:
      return false;
    case PacketType.EVENT:
      return (
        Array.isArray(data) &&
        (typeof data[0] === 'number' || (typeof data[0] === 'string' && !RESERVED.includes(data[0])))
      );
    case PacketType.ACK:
      return Array.isArray(data);
  }
  return (
    (type === PacketType.CONNECT_ERROR && typeof data === 'string') ||
    (typeof data === 'object' && !!data && !Array.isArray(data))
  );
}
