// Playing by WebRTC. In docs/player.html too: scripts/player_page.py --write copies it there.

/** Where WHEP plays the stream that an address ending in .mp4 names; null if it names none. The query, with its credential, is the same. */
export function whepAddress(url) {
  let address;
  try { address = new URL(url, location.href); } catch { return null; }
  const path = /^(\/.+)\.f?mp4$/i.exec(address.pathname);
  if (!path) return null;
  address.protocol = address.protocol.replace(/^ws/, 'http');
  address.pathname = `/whep${path[1]}`;
  return address.href;
}

/**
 * A stream by WHEP (draft-ietf-wish-whep), from the offer until either side ends it. `on`: what is called, never from within the constructor or after close():
 *
 * stream(stream): there is media for the video element; again when another kind of media comes.
 * playing(): the first picture, or the sound of a stream that has no pictures.
 * failed({ playedMs, isFinal }): it is over, and all is closed. `isFinal`: another try would end alike.
 */
export class WHEPSession {
  static limits = {
    answerMs: 5000,         // For the server to answer the offer.
    mediaMs: 3000,          // From the answer to the first media, and from there to the first picture. Where UDP is blocked, nothing comes.
    soundAloneMs: 1000,     // Sound that has come for this long without pictures is played without them.
    disconnectedMs: 5000,   // A connection that is interrupted for longer has failed.
    leaveMs: 2000,          // For the server to answer the end.
    firstLookMs: 100,       // Between looks at what has come: up to the first media, and after it.
    lookMs: 1000,
  };

  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.lastMediaMs = performance.now();
    /** Seconds that media waits in the browser's buffer before it is shown; null while unknown. */
    this.ahead = null;
    this.playingMs = null;
    this.pictureMs = null;
    this.bytes = { video: 0, audio: 0 };
    this.delay = { seconds: 0, count: 0 };
    this.kinds = '';
    this.isOver = false;
    this.onPageHide = () => this.pageHides();
    window.addEventListener('pagehide', this.onPageHide);
    this.open().catch(() => this.fail(true));
  }

  get isPlaying() { return this.playingMs !== null; }

  async open() {
    const connection = new RTCPeerConnection();
    this.connection = connection;
    connection.onconnectionstatechange = () => this.followState();
    for (const kind of ['video', 'audio']) connection.addTransceiver(kind, { direction: 'recvonly' });
    const { sdp } = await connection.createOffer();
    const offer = { type: 'offer', sdp: WHEPSession.inStereo(sdp) };
    if (this.isOver) return;
    // Not aborted when it is late: the address of a session that the server may have begun is in the answer.
    this.deadline = setTimeout(() => this.fail(false), WHEPSession.limits.answerMs);
    let answer;
    try {
      answer = await fetch(this.url, { method: 'POST', headers: { 'Content-Type': 'application/sdp' }, body: offer.sdp });
    } catch {
      return this.fail(false);
    } finally {
      clearTimeout(this.deadline);
    }
    if (answer.status === 201) this.session = this.sessionAddress(answer.headers.get('Location'));
    if (this.isOver) return this.leave();
    // 406: the server cannot send this stream by WebRTC, or not to this browser.
    if (!this.session) return this.fail(answer.status === 406);
    const servers = WHEPSession.iceServers(answer.headers.get('Link'));
    // They count from when the browser begins to look for its addresses, which is with its own description.
    if (servers.length) connection.setConfiguration?.({ iceServers: servers });
    const text = await answer.text();
    if (this.isOver) return;
    await connection.setLocalDescription(offer);
    await connection.setRemoteDescription({ type: 'answer', sdp: text });
    if (this.isOver) return;
    const { transport } = connection.getReceivers()[0];
    // The server's goodbye: long before ICE misses it. There is no session left to end.
    if (transport) transport.onstatechange = () => {
      if (transport.state !== 'closed' || this.isOver) return;
      this.session = null;
      this.fail(false);
    };
    this.answeredMs = performance.now();
    this.look();
  }

  /** Browsers decode Opus in mono unless their own description asks for stereo (RFC 7587 §7.1). */
  static inStereo(sdp) {
    const opus = /^a=rtpmap:(\d+) opus\/48000\/2/im.exec(sdp)?.[1];
    return opus ? sdp.replace(new RegExp(`^a=fmtp:${opus} (?!.*\\bstereo=).*$`, 'm'), (line) => `${line};stereo=1`) : sdp;
  }

  /** The servers of a Link header (RFC 9725 §4.6), in the form of RTCPeerConnection. */
  static iceServers(header) {
    const parameter = /;\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/g;
    const links = (header ?? '').matchAll(new RegExp(`<([^>]*)>((?:\\s*${parameter.source})*)`, 'g'));
    return [...links].map(([, urls, rest]) => {
      const { rel, username, credential } = Object.fromEntries([...rest.matchAll(parameter)].map(([, name, quoted, plain]) => [name, quoted ?? plain]));
      return rel === 'ice-server' && (credential === undefined ? { urls } : { urls, username, credential });
    }).filter(Boolean);
  }

  /** A page of the server itself may call no other address, and reach this one through a proxy that the server does not know of. */
  sessionAddress(text) {
    if (!text) return null;
    const [named, asked] = [new URL(text, this.url), new URL(this.url)];
    return asked.origin === location.origin ? new URL(named.pathname + named.search, asked).href : named.href;
  }

  followState() {
    const state = this.connection.connectionState;
    clearTimeout(this.deadline);
    if (state === 'connected') this.wasConnected = true;
    else if (state === 'failed') this.fail(!this.wasConnected);
    else if (state === 'disconnected') this.deadline = setTimeout(() => this.fail(false), WHEPSession.limits.disconnectedMs);
  }

  // --- What comes

  async look() {
    let entries;
    try { entries = [...(await this.connection.getStats()).values()].filter((entry) => entry.type === 'inbound-rtp'); } catch { return this.fail(true); }
    if (this.isOver) return;
    const now = performance.now();
    const sum = (kind, field) => entries.filter((entry) => entry.kind === kind).reduce((all, entry) => all + (entry[field] ?? 0), 0);
    // Without padding, by which some servers measure the line.
    const bytes = { video: sum('video', 'bytesReceived'), audio: sum('audio', 'bytesReceived') };
    if (bytes.video + bytes.audio > this.bytes.video + this.bytes.audio) this.lastMediaMs = now;
    this.bytes = bytes;
    if (bytes.video) this.pictureMs ??= now;
    const kind = bytes.video ? 'video' : 'audio';
    this.noteDelay(sum(kind, 'jitterBufferDelay'), sum(kind, 'jitterBufferEmittedCount'));

    const isSoundAlone = bytes.audio > 0 && !bytes.video && now - this.answeredMs > WHEPSession.limits.soundAloneMs;
    if (bytes.video) this.give('video audio');
    else if (isSoundAlone) this.give('audio');
    if (sum('video', 'framesDecoded') > 0 || isSoundAlone) {
      if (!this.isPlaying) {
        this.playingMs = now;
        this.on.playing();
      }
    } else if (now - (this.pictureMs ?? this.answeredMs) > WHEPSession.limits.mediaMs) {
      // Behind a connection without media a device may be missing. Without a connection UDP is blocked, and what is not decoded now will not be later.
      return this.fail(!this.wasConnected || bytes.video > 0);
    }
    if (!this.isOver) this.timer = setTimeout(() => this.look(), this.isPlaying ? WHEPSession.limits.lookMs : WHEPSession.limits.firstLookMs);
  }

  /** Chromium's video element plays no sound beside a track of pictures that has none: such a track is left out. */
  give(kinds) {
    if (kinds === this.kinds) return;
    this.kinds = kinds;
    const taken = this.connection.getTransceivers().filter((each) => each.currentDirection === 'recvonly').map((each) => each.receiver.track);
    this.on.stream(new MediaStream(taken.filter((track) => kinds.includes(track.kind))));
  }

  /** Both are sums over the session's frames, or samples of sound. */
  noteDelay(seconds, count) {
    if (count > this.delay.count) this.ahead = (seconds - this.delay.seconds) / (count - this.delay.count);
    this.delay = { seconds, count };
  }

  // --- The end

  close() {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.deadline);
    clearTimeout(this.timer);
    window.removeEventListener('pagehide', this.onPageHide);
    this.leave();
  }

  /** The session is ended first: the server takes the connection's end for the session's, and would not know the session any more. */
  leave() {
    const { session, connection } = this;
    this.session = null;
    const close = () => connection?.close();
    if (!session) return close();
    setTimeout(close, WHEPSession.limits.leaveMs);
    fetch(session, { method: 'DELETE', keepalive: true }).then(close, close);
  }

  fail(isFinal) {
    if (this.isOver) return;
    this.close();
    this.on.failed({ playedMs: this.isPlaying ? performance.now() - this.playingMs : 0, isFinal });
  }

  /** The page is left. Browsers may keep it, and show it again as it was. */
  pageHides() {
    this.close();
    this.connection?.close();
    window.addEventListener('pageshow', () => this.on.failed({ playedMs: Infinity, isFinal: false }), { once: true });
  }
}
