// The event feed: one WebSocket, which reconnects after a break and continues from the last event.
import { post } from './api.js';

/** `handle(message)` gets each message of the feed; `status(isOpen)` reports when the connection opens and closes. */
export class Feed {
  constructor({ room, handle, status }) {
    this.room = room;
    this.handle = handle;
    this.status = status ?? (() => {});
    this.failures = 0;
    this.isRunning = true;
    this.open();
  }

  stop() {
    this.isRunning = false;
    clearTimeout(this.retry);
    this.socket?.close();
  }

  async open() {
    try {
      const { ticket } = await post('/events/ticket', this.room ? { roomId: this.room } : {});
      if (!this.isRunning) return;
      const address = new URL('/events', location.href);
      address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
      address.searchParams.set('ticket', ticket);
      if (this.last !== undefined) address.searchParams.set('after', this.last);
      const socket = new WebSocket(address);
      this.socket = socket;
      socket.onmessage = (message) => this.receive(JSON.parse(message.data));
      socket.onclose = () => { if (socket === this.socket) this.tryAgain(); };
    } catch (error) {
      // Without a login, or for a room that does not exist, a retry is pointless.
      if ([400, 401, 404].includes(error.status)) this.stop(); else this.tryAgain();
    }
  }

  receive(message) {
    if (message.type === 'hello') {
      this.failures = 0;
      this.status(true);
      this.last ??= message.lastEventId;
    }
    if (message.type === 'event') this.last = message.id;
    this.handle(message);
  }

  tryAgain() {
    if (!this.isRunning) return;
    this.status(false);
    const wait = Math.min(500 * 2 ** this.failures, 10000) * (0.75 + Math.random() / 2);
    this.failures += 1;
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.open(), wait);
  }
}
