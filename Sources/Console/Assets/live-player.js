// The player of docs/player.html too: scripts/player_page.py --write copies it there.
import { whepAddress, WHEPSession } from './whep.js';

/**
 * Plays one live stream in a video element, from start() to stop(): by WebRTC, which is nearest to live, or else with MediaSource from a WebSocket, which
 * plays what WebRTC cannot, and where UDP is blocked. Times are seconds unless their names say otherwise.
 */
export class LivePlayer {
  static limits = {
    target: 0.5,            // Media buffered ahead in normal play. Each stall adds a quarter, up to maxTarget, for a minute.
    maxTarget: 2,
    forgetStallMs: 60000,
    maxBehind: 4,           // Further behind than this the player seeks; nearer it only plays a little faster.
    keepBack: 10,           // Media behind the picture that stays in the buffer, with the whole group of pictures that is watched.
    maxHeldBytes: 64 * 1024 * 1024,     // Of groups of pictures. Above it the watched one goes, too: the picture stands still up to the next.
    silentMs: 3000,         // Without media for this long, the user gets a message.
    maxSeekMs: 2000,        // A seek that takes longer is stuck at a gap and is repeated.
    deadMs: 90000,          // After this long without media the connection is closed; the server waits 30 s for a lost device.
    maxQueuedBytes: 32 * 1024 * 1024,
    maxRetryMs: 10000,
    steadyMs: 60000,        // WebRTC that lasted this long is worth another try when it ends.
  };

  /** `url`: ws://HOST/live/NAME.mp4. `show` gets the message for the user; empty when all is well. */
  constructor(video, url, show) {
    this.video = video;
    this.url = url;
    this.show = show;
    /** False, set before start(): the WebSocket alone. */
    this.usesWebRTC = true;
    // Firefox pauses by itself at the end of a stream by WebRTC.
    this.onPause = () => { if (this.isRunning && !this.isSwitching && !this.video.ended) this.disconnect(); };
    this.onPlay = () => { if (this.isRunning && !this.socket && !this.peer) this.connect(); };
    this.onSeeking = () => { this.soughtMs = performance.now(); };
    this.onPlaying = () => { this.isPlaying = true; };
    this.onWaiting = () => {
      if (!this.isPlaying || this.video.seeking) return;
      this.target = Math.min(this.target + 0.25, LivePlayer.limits.maxTarget);
      this.stalledMs = performance.now();
    };
    this.onVideoError = () => { this.restart(`The browser stopped playing: ${this.video.error?.message || 'unknown error'}.`); };
  }

  start() {
    this.isRunning = true;
    this.triesWebRTC = this.usesWebRTC;
    this.isSecondTry = false;
    this.failures = 0;
    this.target = LivePlayer.limits.target;
    this.stalledMs = 0;
    // The video's position at the last check, in seconds.
    this.seenAt = 0;
    this.isPlaying = false;
    this.video.addEventListener('pause', this.onPause);
    this.video.addEventListener('play', this.onPlay);
    this.video.addEventListener('playing', this.onPlaying);
    this.video.addEventListener('seeking', this.onSeeking);
    this.video.addEventListener('waiting', this.onWaiting);
    this.video.addEventListener('error', this.onVideoError);
    this.timer = setInterval(() => this.tick(), 250);
    this.connect();
  }

  stop() {
    this.isRunning = false;
    clearInterval(this.timer);
    this.disconnect();
    this.video.removeEventListener('pause', this.onPause);
    this.video.removeEventListener('play', this.onPlay);
    this.video.removeEventListener('playing', this.onPlaying);
    this.video.removeEventListener('seeking', this.onSeeking);
    this.video.removeEventListener('waiting', this.onWaiting);
    this.video.removeEventListener('error', this.onVideoError);
    this.forgetSource();
    if (this.video.srcObject) this.video.srcObject = null;
    this.video.removeAttribute('src');
    this.video.load();
  }

  /** A buffer that is still busy reports its end later, when it can no longer be read. */
  forgetSource() {
    this.buffer = null;
    this.source = null;
    this.type = null;
    this.isOpening = false;
  }

  // --- The connection

  connect() {
    clearTimeout(this.retry);
    const address = this.triesWebRTC && window.RTCPeerConnection ? whepAddress(this.url) : null;
    if (address) this.openPeer(address);
    else this.openSocket();
  }

  openPeer(address) {
    if (!this.failures) this.show('Connecting…');
    // What a former connection left in the element stays on the screen up to the first picture.
    this.forgetSource();
    const peer = new WHEPSession(address, {
      stream: (stream) => {
        this.isSwitching = true;
        this.video.srcObject = stream;
        this.play();
      },
      playing: () => {
        this.failures = 0;
        this.isSwitching = false;
        // Where a click is needed first, the message that asks for it stays.
        if (!this.video.paused) this.show('');
      },
      failed: (end) => { if (peer === this.peer) this.peerFailed(end); },
    });
    this.peer = peer;
  }

  /**
   * The WebSocket follows, but WebRTC that played is tried once more first, and again only if that has lasted. The next connection begins with WebRTC
   * if it was only refused, as while nobody publishes; where it cannot play, all do without until stop().
   */
  peerFailed({ playedMs, isFinal }) {
    this.peer = null;
    this.isSwitching = false;
    if (playedMs > 0 && !isFinal && (!this.isSecondTry || playedMs > LivePlayer.limits.steadyMs)) {
      this.isSecondTry = true;
      // Spread, because a server that ends has many viewers.
      this.retry = setTimeout(() => this.connect(), Math.random() * 500);
      return;
    }
    this.isSecondTry = false;
    if (playedMs > 0 || isFinal) this.triesWebRTC = false;
    this.openSocket();
  }

  openSocket() {
    let socket;
    try {
      socket = new WebSocket(this.url);
    } catch (error) {
      // No retry: the address itself is wrong.
      this.show(`"${this.url}" is no WebSocket address: ${error.message}`);
      return;
    }
    socket.binaryType = 'arraybuffer';
    this.socket = socket;
    this.queue = [];
    this.queuedBytes = 0;
    this.type = null;
    this.lastMediaMs = performance.now();
    if (!this.failures) this.show('Connecting…');
    let isOpen = false;
    socket.onopen = () => { isOpen = true; };
    socket.onmessage = (message) => { if (socket === this.socket) this.receive(message.data); };
    socket.onclose = async (event) => {
      if (socket !== this.socket) return;
      this.socket = null;
      const ended = event.reason === 'not_found' ? 'Nobody publishes this stream yet.' : event.reason;
      const why = isOpen ? ended || 'The stream ended or the connection broke.' : await this.reasonOfRefusal();
      if (this.isRunning && !this.socket) this.tryAgain(why);
    };
  }

  disconnect() {
    clearTimeout(this.retry);
    const { socket, peer } = this;
    this.socket = null;
    this.peer = null;
    this.queue = [];
    this.queuedBytes = 0;
    socket?.close();
    peer?.close();
  }

  /** Opens a new connection. */
  restart(why) {
    this.disconnect();
    if (this.isRunning) this.tryAgain(why);
  }

  tryAgain(why) {
    clearTimeout(this.retry);
    // Doubled each time, and spread, so that many viewers do not come back all at once.
    const ms = Math.min(500 * 2 ** this.failures, LivePlayer.limits.maxRetryMs) * (0.75 + Math.random() / 2);
    this.failures += 1;
    this.show(`${why} Trying again in ${Math.max(1, Math.round(ms / 1000))} s.`);
    this.retry = setTimeout(() => this.connect(), ms);
  }

  /** WebSockets hide the server's answer from a page; a plain request for the same address shows it. */
  async reasonOfRefusal() {
    const cancel = new AbortController();
    const deadline = setTimeout(() => cancel.abort(), 5000);
    try {
      const answer = await fetch(this.url.replace(/^ws/, 'http'), { signal: cancel.signal });
      if (answer.ok) return 'The connection could not be opened.';
      const body = await answer.json().catch(() => ({}));
      return body.message || `The server answered ${answer.status}.`;
    } catch {
      return 'The server cannot be reached, or does not let this page play.';
    } finally {
      clearTimeout(deadline);
      // If the answer is the stream itself, it has no end.
      cancel.abort();
    }
  }

  // --- Media

  /** A text message gives the type of the pieces that follow; each binary message is a piece. */
  receive(data) {
    this.lastMediaMs = performance.now();
    this.queue.push(data);
    this.queuedBytes += data.byteLength || 0;
    if (this.queuedBytes > LivePlayer.limits.maxQueuedBytes) {
      this.restart('The browser takes the stream too slowly.');
      return;
    }
    this.feed();
  }

  feed() {
    while (this.queue.length && !this.isOpening && !this.buffer?.updating) {
      const item = this.queue[0];
      if (typeof item === 'string') {
        this.queue.shift();
        let type;
        try { type = JSON.parse(item).mimeType; } catch { /* Checked below. */ }
        if (typeof type !== 'string') return this.restart('The server sent text that names no mimeType.');
        this.change(type);
      } else if (!this.type) {
        // This browser does not play the type; another may follow.
        this.take();
      } else {
        try {
          this.buffer.appendBuffer(item);
        } catch (error) {
          if (error.name === 'QuotaExceededError' && (this.trim(0) || this.trim(0, true))) return;
          return this.restart(`The browser did not take the media: ${error.message}`);
        }
        this.groups.add(item);
        this.take();
      }
    }
  }

  take() { this.queuedBytes -= this.queue.shift().byteLength; }

  /** The kinds of track in a type, such as "av". */
  static kinds(type) {
    const codecs = (/codecs="?([^"]*)/.exec(type)?.[1] ?? '').split(',').map((codec) => codec.trim());
    return codecs.map((codec) => (/^(avc|hvc|hev|av01|vp0|vvc|vvi|dvh)/.test(codec) ? 'v' : 'a')).sort().join('');
  }

  /** iPhones have the managed one only. It wants media while less than ten seconds lie ahead (WebKit bug 253295): here always. */
  static get Source() { return window.MediaSource ?? window.ManagedMediaSource; }

  change(type) {
    if (!LivePlayer.Source) { this.type = null; this.show('This browser has no MediaSource.'); return; }
    if (!LivePlayer.Source.isTypeSupported(type)) {
      this.type = null;
      this.show(`This browser cannot play ${type}.`);
      return;
    }
    const before = this.type;
    this.type = type;
    // A SourceBuffer keeps its tracks for life; only their codecs may change (MSE §5.5.7, §3.5.8).
    if (before && this.buffer && LivePlayer.kinds(before) === LivePlayer.kinds(type) && this.buffer.changeType) {
      this.buffer.changeType(type);
      return;
    }
    this.open(type);
  }

  open(type) {
    const source = new LivePlayer.Source();
    // ManagedMediaSource opens only so, or with a second source for AirPlay.
    if (!window.MediaSource) this.video.disableRemotePlayback = true;
    const address = URL.createObjectURL(source);
    this.source = source;
    this.groups = new Groups();
    this.buffer = null;
    this.isOpening = true;
    this.hasBegun = false;
    this.isPlaying = false;
    source.onsourceopen = () => {
      URL.revokeObjectURL(address);
      if (source !== this.source) return;
      source.onsourceopen = null;
      const buffer = source.addSourceBuffer(type);
      buffer.onupdateend = () => {
        if (buffer !== this.buffer) return;
        this.keepNear();
        if (!buffer.updating) this.feed();
      };
      buffer.onerror = () => { if (buffer === this.buffer) this.restart('The browser could not read the media.'); };
      this.buffer = buffer;
      this.isOpening = false;
      this.isSwitching = false;
      this.feed();
    };
    // Up to this point the last picture stays on the screen.
    this.isSwitching = true;
    if (this.video.srcObject) this.video.srcObject = null;
    this.video.src = address;
    this.play();
  }

  play() {
    this.video.play().catch((error) => {
      if (error.name === 'NotAllowedError') this.show('Click to play.');
    });
  }

  // --- Near live

  /** Starts at the live edge, stays near it, jumps over gaps and drops old media. */
  keepNear() {
    const { video } = this;
    const ranges = this.buffer?.buffered;
    const isStuck = video.seeking && performance.now() - this.soughtMs > LivePlayer.limits.maxSeekMs;
    if (!ranges?.length || (video.seeking && !isStuck)) return;
    const end = ranges.end(ranges.length - 1);
    const begin = ranges.start(ranges.length - 1);
    // Past the live edge no media will come: the clock of a returned device may have jumped.
    const behind = end - video.currentTime;
    if (!this.hasBegun || isStuck || behind > LivePlayer.limits.maxBehind || behind < -1) {
      // The first buffered time is not 0 but the stream's own.
      video.currentTime = Math.max(begin, end - this.target);
      this.hasBegun = true;
    } else if (this.isInGap(ranges, video.currentTime)) {
      for (let i = 0; i < ranges.length; i++) {
        if (ranges.start(i) > video.currentTime) { video.currentTime = ranges.start(i) + 0.001; break; }
      }
    } else if (this.hasPassedGap(ranges, this.seenAt, video.currentTime)) {
      // Sound plays on over a short gap while video is stuck before it. A seek to the current position frees the video.
      video.currentTime += 0.001;
    }
    this.seenAt = video.currentTime;
    // Once faster, play stays faster until the target is reached: pieces arrive in steps, which must not toggle the speed.
    if (behind > this.target + 1) video.playbackRate = 1.25;
    else if (behind > this.target + 0.3) video.playbackRate = Math.max(video.playbackRate, 1.1);
    else if (behind <= this.target) video.playbackRate = 1;
    // Without a type, the rest of a former one still plays, so the message about the current one stays.
    if (behind > 0 && this.type) {
      this.failures = 0;
      if (video.readyState >= HTMLMediaElement.HAVE_FUTURE_DATA) this.show('');
    }
    this.trim(LivePlayer.limits.keepBack);
  }

  isInGap(ranges, time) {
    for (let i = 0; i < ranges.length; i++) {
      // In the last tenth of a second, a range has nothing left to play.
      if (time >= ranges.start(i) && time < ranges.end(i) - (i + 1 < ranges.length ? 0.1 : 0)) return false;
    }
    return true;
  }

  /** Whether it has played from one range into the next. */
  hasPassedGap(ranges, from, to) {
    for (let i = 0; i + 1 < ranges.length; i++) {
      if (from < ranges.end(i) && ranges.start(i + 1) <= to) return true;
    }
    return false;
  }

  /** Removes media that lies more than `keep` behind the picture. Returns whether there was any. */
  trim(keep, takesWatched = this.groups.bytes > LivePlayer.limits.maxHeldBytes) {
    const { buffer, video, groups } = this;
    if (!buffer || buffer.updating || !buffer.buffered.length) return false;
    // Browsers remove all pictures that build on a removed one (MSE §3.5.9), those ahead too: the watched group stays whole.
    const until = Math.min(video.currentTime - keep, takesWatched ? Infinity : groups.begin(video.currentTime));
    // In steps, not for each piece.
    if (until - buffer.buffered.start(0) < (keep ? 5 : 0.1)) return false;
    buffer.remove(0, until);
    groups.drop(until);
    return true;
  }

  tick() {
    if (!this.socket && !this.peer) return;
    this.keepNear();
    const now = performance.now();
    if (now - this.stalledMs > LivePlayer.limits.forgetStallMs && this.target > LivePlayer.limits.target) {
      this.target -= 0.25;
      this.stalledMs = now;
    }
    const silent = now - (this.peer ?? this).lastMediaMs;
    if (silent > LivePlayer.limits.deadMs) this.restart('Nothing has come for a long time.');
    else if (silent > LivePlayer.limits.silentMs && (this.type || this.peer?.isPlaying)) this.show('Waiting for the device…');
    else if (this.peer?.isPlaying && !this.video.paused) this.show('');
  }
}

/** The groups of pictures in a buffer: where each begins and how large it is, read from the pieces' boxes (ISO/IEC 14496-12 §8). */
class Groups {
  constructor() {
    this.track = null;
    this.list = [];
  }

  get bytes() { return this.list.reduce((sum, group) => sum + group.bytes, 0); }

  /** Where the group that holds the picture at `time` begins. Sound alone has no groups: any place is a beginning. */
  begin(time) {
    if (!this.track) return time;
    // A millisecond before it: browsers round.
    return (this.list.filter((group) => group.start <= time).pop()?.start ?? 0) - 0.001;
  }

  /** What lies before `time` is gone, with all groups that began there. */
  drop(time) { this.list = this.list.filter((group) => group.start >= time); }

  /** Takes note of a piece that was appended. */
  add(piece) {
    const view = new DataView(piece);
    try {
      for (const box of Groups.boxes(view, 0, view.byteLength)) {
        if (box.name === 'moov') this.readTracks(view, box);
        if (box.name === 'moof' && this.track) this.readFragment(view, box);
      }
    } catch {
      // A broken piece is the browser's to refuse; here it begins no group.
    }
    // What comes before the first keyframe, the browser drops.
    if (this.list.length) this.list[this.list.length - 1].bytes += piece.byteLength;
  }

  static *boxes(view, begin, end) {
    for (let at = begin; at + 8 <= end;) {
      const size = view.getUint32(at);
      if (size < 8) return;
      yield { name: String.fromCharCode(...[4, 5, 6, 7].map((i) => view.getUint8(at + i))), begin: at + 8, end: at + size };
      at += size;
    }
  }

  static inside(view, box, name) { return [...Groups.boxes(view, box.begin, box.end)].filter((inner) => inner.name === name); }

  readTracks(view, moov) {
    this.track = null;
    for (const trak of Groups.inside(view, moov, 'trak')) {
      const [tkhd] = Groups.inside(view, trak, 'tkhd');
      const [mdia] = Groups.inside(view, trak, 'mdia');
      const [hdlr] = Groups.inside(view, mdia, 'hdlr');
      const [mdhd] = Groups.inside(view, mdia, 'mdhd');
      if (view.getUint32(hdlr.begin + 8) !== 0x76696465) continue;  // "vide"
      // Version 1 of a box has times of 8 bytes.
      const field = (box) => view.getUint32(box.begin + (view.getUint8(box.begin) ? 20 : 12));
      this.track = { id: field(tkhd), timescale: field(mdhd) };
    }
  }

  /** A piece whose first picture is a keyframe begins a group. One that has a keyframe further on belongs to the group before. */
  readFragment(view, moof) {
    for (const traf of Groups.inside(view, moof, 'traf')) {
      const [tfhd] = Groups.inside(view, traf, 'tfhd');
      const [tfdt] = Groups.inside(view, traf, 'tfdt');
      const [trun] = Groups.inside(view, traf, 'trun');
      if (!trun || view.getUint32(tfhd.begin + 4) !== this.track.id) continue;
      const [track, run] = [view.getUint32(tfhd.begin), view.getUint32(trun.begin)];
      // Fields are there by their bits: the first sample's flags stand in its own entry, before all entries, or with the track.
      const entry = trun.begin + 8 + (run & 0x1 ? 4 : 0) + (run & 0x4 ? 4 : 0);
      const ownFlags = entry + (run & 0x100 ? 4 : 0) + (run & 0x200 ? 4 : 0);
      const trackFlags = tfhd.begin + 8 + [0x1, 0x1, 0x2, 0x8, 0x10].reduce((sum, bit) => sum + (track & bit ? 4 : 0), 0);
      const at = run & 0x4 ? entry - 4 : run & 0x400 ? ownFlags : track & 0x20 ? trackFlags : null;
      if (at === null || view.getUint32(at) & 0x10000) continue;
      const shift = run & 0x800 ? view.getInt32(ownFlags + (run & 0x400 ? 4 : 0)) : 0;
      const time = view.getUint8(tfdt.begin) ? Number(view.getBigUint64(tfdt.begin + 4)) : view.getUint32(tfdt.begin + 4);
      const start = (time + shift) / this.track.timescale;
      // Media of the same time replaces what was there.
      this.list = this.list.filter((group) => group.start < start);
      this.list.push({ start, bytes: 0 });
    }
  }
}
