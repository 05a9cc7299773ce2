// A player of addresses that the server signs.
import { LivePlayer } from './live-player.js';

/** The same server that this page came from, whatever name a URL gives it; by WebSocket. */
export function socketAddress(text) {
  const signed = new URL(text);
  const address = new URL(signed.pathname + signed.search, location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  return address.href;
}

/** Asks `sign` for an address before each connection: a page may stay open for longer than one is good. */
export class SignedPlayer extends LivePlayer {
  constructor(media, sign, show) {
    super(media, '', show);
    this.sign = sign;
  }

  async connect() {
    clearTimeout(this.retry);
    const turn = {};
    this.turn = turn;
    const isOver = () => !this.isRunning || turn !== this.turn;
    try {
      const url = await this.sign();
      if (isOver()) return;
      this.url = url;
      super.connect();
    } catch (error) {
      if (!isOver()) this.tryAgain(error.message);
    }
  }

  disconnect() {
    this.turn = null;
    super.disconnect();
  }
}
