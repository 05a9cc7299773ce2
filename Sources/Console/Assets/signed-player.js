// A player of URLs that the server signs.
import { t } from './i18n.js';
import { LivePlayer } from './live-player.js';

/** The URL on this page's own server, whatever host it names, by WebSocket. */
export function socketAddress(text) {
  const signed = new URL(text);
  const address = new URL(signed.pathname + signed.search, location.href);
  address.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  return address.href;
}

/** The player's messages, in the page's language. */
export function playerWords(text) {
  const again = /^(.*) Trying again in (\d+) s\.$/s.exec(text);
  if (again) return `${t(again[1])} ${t('Trying again in {n} s.', { n: again[2] })}`;
  const type = /^This browser cannot play (.*)\.$/.exec(text);
  return type ? t('This browser cannot play {type}.', { type: type[1] }) : t(text);
}

/** Calls `sign` for a URL before each connection: a page may stay open for longer than a URL is valid. */
export class SignedPlayer extends LivePlayer {
  constructor(media, sign, show) {
    super(media, '', show);
    this.sign = sign;
  }

  async connect() {
    clearTimeout(this.retry);
    const turn = {};
    this.turn = turn;
    this.connectedAt = null;
    const isOver = () => !this.isRunning || turn !== this.turn;
    try {
      const url = await this.sign();
      if (isOver()) return;
      this.url = url;
      this.connectedAt = performance.now();
      super.connect();
    } catch (error) {
      if (!isOver()) this.tryAgain(error.status ? error.message : 'The server cannot be reached.');
    }
  }

  openSocket() {
    // After WebRTC that did not play, a session of its own.
    this.connectedAt = performance.now();
    super.openSocket();
  }

  disconnect() {
    this.turn = null;
    super.disconnect();
  }

  /** Media that has come and is not shown yet, in seconds; null without any. */
  get ahead() {
    if (this.peer) return this.peer.ahead;
    const ranges = this.video.buffered;
    return ranges.length ? ranges.end(ranges.length - 1) - this.video.currentTime : null;
  }

  /** For how long it has been a viewer, in seconds; null while it is none. */
  get seconds() {
    const plays = this.peer ? this.peer.isPlaying : this.video.buffered.length;
    return this.connectedAt && plays ? (performance.now() - this.connectedAt) / 1000 : null;
  }
}
