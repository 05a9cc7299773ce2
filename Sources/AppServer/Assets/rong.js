// Replaces the vendor's RongIMLib and RongRTC in web clients of classes. A classic script; it connects to the server that it was loaded from.
//
// Three layers: Channel is one WebSocket that reconnects; Mesh connects browsers to each other and signals over the channel; RongIMLib and RongRTC
// give both the vendor's names and shapes. window.Earshot = { Channel, Mesh } serves pages without the vendor's API.
(function () {
  'use strict';

  // Pages that load it in place of both of the vendor's scripts load it twice.
  if (window.Earshot) return;
  const origin = new URL(document.currentScript ? document.currentScript.src : location.href, location.href).origin;

  class Emitter {
    constructor() { this.listeners = new Map(); }

    /** Returns the function that removes the listener. */
    on(name, listener) {
      if (!this.listeners.has(name)) this.listeners.set(name, new Set());
      this.listeners.get(name).add(listener);
      return () => this.listeners.get(name).delete(listener);
    }

    emit(name, ...values) {
      for (const listener of [...(this.listeners.get(name) || [])]) {
        try { listener(...values); } catch (error) { console.error(name, error); }
      }
    }
  }

  const randomID = () => [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

  // MARK: Channel

  const finalCodes = { 4001: 'replaced', 4002: 'kicked', 4004: 'ended' };
  const roles = { assistant: 1, teacher: 2, student: 3, audience: 4 };

  /**
   * A member's channel. Emits `hello` (frame), `message` (frame), `lost` (when it will reconnect) and `ended` (reason), once, when it will not:
   * `token` (no longer valid), `replaced`, `kicked`, `ended` (the class), `gone` (the member has left), `closed` (by close()). `people` maps the ids
   * of the class's members to their known data.
   */
  class Channel extends Emitter {
    constructor(token) {
      super();
      this.token = token;
      this.people = new Map();
      this.you = null;
      this.isOpen = false;
      this.hasEnded = false;
      this.socket = null;
      this.hello = null;
      this.wait = 500;
      this.count = 0;
      this.waiting = new Map();
      this.wake = () => { if (this.timer) { clearTimeout(this.timer); this.timer = 0; this.open(); } };
      window.addEventListener('online', this.wake);
    }

    /** Opens with a ticket: unlike the token, it may appear in a URL, and a refused token can be distinguished from a lost network. */
    async open() {
      let ticket;
      try {
        const answer = await fetch(`${origin}/channel/ticket`, { method: 'POST', body: JSON.stringify({ token: this.token }), credentials: 'omit' });
        if ([400, 401, 403].includes(answer.status)) return this.end('token');
        const body = await answer.json();
        ticket = (body.data || body).ticket;
      } catch { /* The network. */ }
      if (this.hasEnded) return undefined;
      if (!ticket) return this.again();
      const socket = new WebSocket(`${origin.replace(/^http/, 'ws')}/channel?ticket=${encodeURIComponent(ticket)}`);
      this.socket = socket;
      let reason = 'gone';
      let heard = performance.now();
      // A page cannot see the server's own pings. A connection without any message is dead.
      const beat = setInterval(() => {
        if (performance.now() - heard > 45000) socket.close(); else if (this.isOpen) this.write({ type: 'ping', ref: 0 });
      }, 15000);
      socket.onmessage = (event) => {
        heard = performance.now();
        let frame;
        try { frame = JSON.parse(event.data); } catch { return; }
        if (frame.type === 'error' && !frame.ref) reason = frame.code === 'unavailable' ? '' : 'gone';
        this.take(frame);
      };
      socket.onclose = (event) => {
        clearInterval(beat);
        if (this.socket !== socket || this.hasEnded) return;
        this.socket = null;
        this.drop();
        if (finalCodes[event.code]) this.end(finalCodes[event.code]);
        else if (event.code === 4003 && reason) this.end(reason);
        else this.again();
      };
      return undefined;
    }

    again() {
      if (this.hasEnded) return;
      this.emit('lost');
      this.timer = setTimeout(() => { this.timer = 0; this.open(); }, this.wait * (0.75 + Math.random() / 2));
      this.wait = Math.min(this.wait * 2, 15000);
    }

    drop() {
      this.isOpen = false;
      for (const { reject } of this.waiting.values()) reject(new Error('lost'));
      this.waiting.clear();
    }

    end(reason) {
      if (this.hasEnded) return;
      this.hasEnded = true;
      clearTimeout(this.timer);
      window.removeEventListener('online', this.wake);
      const socket = this.socket;
      this.socket = null;
      this.drop();
      if (socket) socket.close(1000);
      this.emit('ended', reason);
    }

    close() { this.end('closed'); }

    write(frame) {
      if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(frame));
    }

    /** Resolves when the server has accepted the message. `to`: one member, otherwise all others. */
    send(object, content, to) {
      if (!this.isOpen) return Promise.reject(new Error('lost'));
      this.count += 1;
      const ref = this.count;
      const done = new Promise((resolve, reject) => { this.waiting.set(ref, { resolve, reject }); });
      this.write(to ? { type: 'send', ref, to, object, content } : { type: 'send', ref, object, content });
      return done;
    }

    take(frame) {
      switch (frame.type) {
        case 'hello': {
          this.wait = 500;
          this.isOpen = true;
          this.you = frame.you;
          this.hello = frame;
          this.people.clear();
          const state = frame.state && frame.state.class;
          for (const person of state ? state.members : []) this.people.set(person.userId, { ...person });
          if (!state) {
            for (const { id, name, role } of [frame.you, ...frame.members]) this.people.set(id, { userId: id, userName: name, role: roles[role] || 4 });
          }
          this.emit('hello', frame);
          break;
        }
        case 'message':
          this.learn(frame.object, frame.content);
          this.emit('message', frame);
          break;
        case 'ack':
        case 'error': {
          const waiting = this.waiting.get(frame.ref);
          if (!waiting) break;
          this.waiting.delete(frame.ref);
          if (frame.type === 'ack') waiting.resolve(frame.data);
          else waiting.reject(Object.assign(new Error(frame.message), { code: frame.code }));
          break;
        }
        default:
      }
    }

    /** Updates `people` from the class's messages. */
    learn(object, content) {
      const setRole = (id, role) => { if (this.people.has(id)) this.people.get(id).role = role; };
      switch (object) {
        case 'SC:RMCMsg': {
          const { action, userId, userName, role, camera, microphone } = content;
          if (action === 1) this.people.set(userId, { ...this.people.get(userId), userId, userName, role, camera, microphone });
          else this.people.delete(userId);
          break;
        }
        case 'SC:RCMsg':
          for (const { userId, role } of content.users) setRole(userId, role);
          break;
        case 'SC:ATMsg':
          setRole(content.opUserId, 3);
          setRole(content.toUserId, 1);
          break;
        case 'SC:DRMsg': {
          const person = this.people.get(content.userId);
          if (person) person[content.type === 0 ? 'microphone' : 'camera'] = content.enable;
          break;
        }
        default:
      }
    }
  }

  // MARK: Mesh

  // audience: how many members of the audience one browser sends to. The class itself limits the seats.
  const reach = { audience: 16, answerMs: 8000, connectMs: 8000, offerMs: 1500, batchMs: 50, callMs: 4000, refusals: 10 };

  /**
   * One connection to another member. The caller gives each link a random name; signals of other links are ignored. Both sides may offer at once: the
   * one with the greater id yields ("perfect negotiation", W3C WebRTC 1.0 §10.7).
   */
  class Peer {
    constructor(mesh, id, link, isCaller) {
      Object.assign(this, { mesh, id, link, isCaller });
      this.isPolite = mesh.channel.you.id > id;
      this.isAnswered = !isCaller;
      this.senders = new Map();
      this.received = new Map();
      this.announced = [];
      this.shown = new Map();
      this.candidates = [];
      this.work = Promise.resolve();
      this.connection = new RTCPeerConnection({ iceServers: mesh.iceServers });
      this.connection.onnegotiationneeded = () => this.offer();
      this.connection.onicecandidate = ({ candidate }) => { if (candidate) this.tell(candidate); };
      this.connection.ontrack = ({ track, streams: [stream] }) => {
        if (!stream) return;
        this.received.set(stream.id, stream);
        track.onunmute = () => this.show();
        this.show();
      };
      this.connection.onconnectionstatechange = () => mesh.stateChanged(this);
      if (isCaller) this.timer = setTimeout(() => { if (!this.isAnswered) mesh.unanswered(this); }, reach.answerMs);
    }

    signal(kind, values) { this.mesh.signal(this.id, { kind, link: this.link, ...values }); }

    async offer() {
      try {
        this.isOffering = true;
        await this.connection.setLocalDescription();
        this.watch();
        if (this.connection.localDescription) this.signal('description', { description: this.connection.localDescription });
      } catch (error) {
        console.warn('offer', error);
      } finally {
        this.isOffering = false;
      }
    }

    /** Candidates come in bursts, and a channel accepts 50 messages a second, so several are sent together. */
    tell(candidate) {
      this.candidates.push(candidate);
      if (this.candidates.length === 1) setTimeout(() => this.signal('candidates', { candidates: this.candidates.splice(0) }), reach.batchMs);
    }

    take(content) { this.work = this.work.then(() => this.handle(content)).catch((error) => console.warn('signal', error)); }

    async handle({ kind, description, candidates }) {
      if (this.isClosed) return;
      if (kind === 'candidates') {
        for (const candidate of candidates) {
          try { await this.connection.addIceCandidate(candidate); } catch (error) { if (!this.ignoresOffer) throw error; }
        }
        return;
      }
      const isReady = !this.isOffering && (this.connection.signalingState === 'stable' || this.isSettingAnswer);
      this.ignoresOffer = !this.isPolite && description.type === 'offer' && !isReady;
      if (this.ignoresOffer) return;
      this.isSettingAnswer = description.type === 'answer';
      await this.connection.setRemoteDescription(description);
      this.watch();
      this.isSettingAnswer = false;
      if (description.type !== 'offer') return;
      // This side's tracks join the same round of negotiation.
      this.start();
      await this.connection.setLocalDescription();
      this.signal('description', { description: this.connection.localDescription });
    }

    /** A signal or a first packet may be lost for good, and a connection without any pair of addresses never says that it has failed. */
    watch() {
      if (this.watched || !this.isCaller) return;
      this.watched = setTimeout(() => { if (this.connection.connectionState !== 'connected') this.mesh.callLater(this); }, reach.connectMs);
    }

    /** Sends this side's tracks from now on. */
    start() {
      this.isStarted = true;
      const wanted = new Map();
      for (const { stream } of this.mesh.local.values()) for (const track of stream.getTracks()) wanted.set(track, stream);
      for (const [track, sender] of this.senders) {
        if (wanted.has(track)) continue;
        this.connection.removeTrack(sender);
        this.senders.delete(track);
      }
      for (const [track, stream] of wanted) if (!this.senders.has(track)) this.senders.set(track, this.connection.addTrack(track, stream));
    }

    /** Takes the other side's list of streams. */
    hear(streams) {
      this.announced = Array.isArray(streams) ? streams.slice(0, 4) : [];
      this.show();
    }

    /** Shows the streams that were announced and have arrived. */
    show() {
      if (this.isClosed) return;
      for (const [tag, seen] of this.shown) {
        if (this.announced.some((each) => each.tag === tag && each.id === seen.stream.id)) continue;
        this.shown.delete(tag);
        this.mesh.emit('stream', this.id, tag, null, { video: false, audio: false });
      }
      for (const { tag, id, video, audio } of this.announced) {
        const stream = this.received.get(id);
        if (!stream) continue;
        const state = { video: video === true, audio: audio === true };
        const seen = this.shown.get(tag);
        this.shown.set(tag, { stream, state });
        if (!seen || seen.stream !== stream) this.mesh.emit('stream', this.id, tag, stream, state);
        else if (seen.state.video !== state.video || seen.state.audio !== state.audio) this.mesh.emit('changed', this.id, tag, state, seen.state);
      }
    }

    close() {
      this.isClosed = true;
      clearTimeout(this.timer);
      clearTimeout(this.watched);
      this.connection.onnegotiationneeded = this.connection.onconnectionstatechange = this.connection.ontrack = null;
      this.connection.close();
      for (const tag of this.shown.keys()) this.mesh.emit('stream', this.id, tag, null, { video: false, audio: false });
      this.shown.clear();
    }
  }

  /**
   * Media from browser to browser, for one channel. Members with a seat (all except audience) connect to everybody, audience to them. Emits `joined`
   * (id), `left` (id), `stream` (id, tag, MediaStream or null, {video, audio}), `changed` (id, tag, state, former state), `full` (id: that member
   * already sends to as many as it can), `unanswered` (id: no answer came), `state` (id, RTCPeerConnection state).
   */
  class Mesh extends Emitter {
    constructor(channel, iceServers = []) {
      super();
      Object.assign(this, { channel, iceServers });
      this.peers = new Map();
      this.joined = new Set();
      this.tries = new Map();
      this.local = new Map();
      this.ends = [];
      this.refused = { second: 0, count: 0 };
    }

    start() {
      this.isOn = true;
      this.ends = [
        this.channel.on('hello', () => this.announce()),
        this.channel.on('message', (frame) => this.heard(frame)),
        this.channel.on('ended', () => this.stop()),
      ];
      if (this.channel.isOpen) this.announce();
    }

    stop() {
      if (!this.isOn) return;
      this.isOn = false;
      for (const end of this.ends) end();
      for (const peer of [...this.peers.values()]) {
        peer.signal('bye');
        this.drop(peer);
      }
      this.joined.clear();
      this.local.clear();
    }

    hasSeat(id) { return (this.channel.people.get(id) || {}).role !== 4; }

    isCrowdedFor(id) { return !this.hasSeat(id) && [...this.peers.keys()].filter((each) => !this.hasSeat(each)).length >= reach.audience; }

    streams() { return [...this.local].map(([tag, { stream, state }]) => ({ tag, id: stream.id, ...state })); }

    signal(to, content) { this.channel.send('rtc', content, to).catch(() => {}); }

    /** Connects to all members. Seats come first, in case there are more members than a browser can serve. */
    announce() {
      if (!this.isOn) return;
      const me = this.channel.you.id;
      for (const id of [...this.peers.keys()]) {
        if (!this.channel.people.has(id)) this.forget(id);
      }
      const others = [...this.channel.people.keys()].filter((id) => id !== me && (this.hasSeat(me) || this.hasSeat(id)));
      others.sort((one, other) => this.hasSeat(other) - this.hasSeat(one));
      for (const id of others) {
        const peer = this.peers.get(id);
        // Losing the channel does not affect the media, but a signal may have been lost.
        if (peer && peer.connection.connectionState === 'connected' && peer.connection.signalingState === 'stable') {
          peer.signal('streams', { streams: this.streams() });
        } else {
          this.call(id);
        }
      }
    }

    call(id) {
      const former = this.peers.get(id);
      if (former) this.drop(former);
      if (this.isCrowdedFor(id)) return;
      const peer = new Peer(this, id, randomID(), true);
      this.peers.set(id, peer);
      peer.signal('here', { streams: this.streams() });
    }

    unanswered(peer) {
      this.drop(peer);
      this.emit('unanswered', peer.id);
      this.callLater(peer);
    }

    /** Calls once more, if no link has come to life by then. The wait grows with each try. */
    callLater(peer) {
      const { id } = peer;
      const tries = (this.tries.get(id) || 0) + 1;
      this.tries.set(id, tries);
      setTimeout(() => {
        const now = this.peers.get(id);
        const isOver = now && (now !== peer || now.connection.connectionState === 'connected');
        if (this.isOn && this.channel.isOpen && this.channel.people.has(id) && !isOver) this.call(id);
      }, Math.min(2000 * 2 ** tries, 60000) * (0.5 + Math.random() / 2));
    }

    drop(peer) {
      if (this.peers.get(peer.id) === peer) this.peers.delete(peer.id);
      peer.close();
    }

    forget(id) {
      const peer = this.peers.get(id);
      if (peer) this.drop(peer);
      this.tries.delete(id);
      if (this.joined.delete(id)) this.emit('left', id);
    }

    heard({ from, object, content }) {
      if (object === 'rtc') {
        if (content && typeof content === 'object') this.signalled(from, content);
        return;
      }
      if (object === 'SC:RMCMsg' && content.action !== 1) this.forget(content.userId);
      const me = this.channel.you.id;
      // A newcomer calls the others, but not everybody when there are very many. The audience then calls by itself and learns why there is no
      // picture.
      if (object === 'SC:RMCMsg' && content.action === 1 && content.role !== 4 && !this.hasSeat(me)) {
        setTimeout(() => {
          if (this.isOn && this.channel.isOpen && this.channel.people.has(content.userId) && !this.peers.has(content.userId)) this.call(content.userId);
        }, reach.callMs * (1 + Math.random()));
      }
      // A member that gets a seat calls those to whom it had no connection before.
      const isMine = (object === 'SC:RCMsg' && content.users.some((user) => user.userId === me)) || (object === 'SC:ATMsg' && content.toUserId === me);
      if (isMine && this.hasSeat(me)) {
        for (const id of this.channel.people.keys()) if (id !== me && !this.peers.has(id)) this.call(id);
      }
    }

    signalled(from, content) {
      const peer = this.peers.get(from);
      const isSame = peer && peer.link === content.link;
      switch (content.kind) {
        case 'here':
          if (isSame) {
            peer.isAnswered = true;
            // Streams may have been published since the call.
            peer.signal('streams', { streams: this.streams() });
            peer.hear(content.streams);
            // If the called side has something to send, it offers, and this side's tracks join that round.
            if (!content.streams || content.streams.length === 0) peer.start();
            else setTimeout(() => { if (!peer.isClosed && !peer.isStarted) peer.start(); }, reach.offerMs);
            break;
          }
          if (content.isReply) break;
          // Both sides have called at once: the greater link stays. Sent again, as the other side may have missed it.
          if (peer && peer.isCaller && !peer.isAnswered && peer.link > content.link) {
            peer.signal('here', { streams: this.streams() });
            break;
          }
          if (peer) this.drop(peer);
          this.answer(from, content);
          break;
        case 'streams':
          if (isSame) peer.hear(content.streams);
          break;
        case 'description':
        case 'candidates':
          if (isSame) peer.take(content);
          else this.signal(from, { kind: 'gone', link: content.link });
          break;
        case 'gone':
          if (!isSame) break;
          this.drop(peer);
          setTimeout(() => { if (this.isOn && !this.peers.has(from) && this.channel.people.has(from)) this.call(from); }, 500 + Math.random() * 1000);
          break;
        case 'full':
          if (!isSame) break;
          this.drop(peer);
          this.emit('full', from);
          break;
        case 'bye':
          if (isSame) this.forget(from);
          break;
        default:
      }
      if (this.peers.has(from) && !this.joined.has(from) && ['here', 'streams'].includes(content.kind)) {
        this.joined.add(from);
        this.emit('joined', from);
      }
    }

    answer(from, { link, streams }) {
      if (this.isCrowdedFor(from)) return this.refuse(from, link);
      const peer = new Peer(this, from, link, false);
      this.peers.set(from, peer);
      peer.signal('here', { isReply: true, streams: this.streams() });
      peer.hear(streams);
      // Without media to send, it waits for the caller's offer.
      if (this.local.size > 0) peer.start();
      return undefined;
    }

    /** Refuses a call. Limited per second: a large audience must not use up the channel's rate. */
    refuse(from, link) {
      const second = Math.floor(Date.now() / 1000);
      if (this.refused.second !== second) this.refused = { second, count: 0 };
      this.refused.count += 1;
      if (this.refused.count <= reach.refusals) this.signal(from, { kind: 'full', link });
    }

    stateChanged(peer) {
      const { connectionState } = peer.connection;
      this.emit('state', peer.id, connectionState);
      if (connectionState === 'connected') this.tries.delete(peer.id);
      if (connectionState === 'failed' && peer.isCaller) this.callLater(peer);
    }

    /** Publishes a stream. `state`: whether picture and sound are on. A further call takes the stream's current tracks. */
    publish(tag, stream, state) {
      this.local.set(tag, { stream, state: { video: state.video, audio: state.audio } });
      this.changed();
    }

    unpublish(tag) {
      if (this.local.delete(tag)) this.changed();
    }

    /** Switches this side's picture or sound (`kind` video or audio) of a stream. */
    set(tag, kind, isOn) {
      const local = this.local.get(tag);
      if (!local) return;
      for (const track of local.stream.getTracks()) if (track.kind === kind) track.enabled = isOn;
      local.state[kind] = isOn;
      for (const peer of this.peers.values()) peer.signal('streams', { streams: this.streams() });
    }

    changed() {
      for (const peer of this.peers.values()) {
        if (!peer.isAnswered) continue;
        peer.signal('streams', { streams: this.streams() });
        peer.start();
      }
    }
  }

  window.Earshot = { Channel, Mesh };

  // MARK: RongIMLib

  const numbered = (values) => {
    const both = {};
    for (const [name, value] of Object.entries(values)) {
      both[name] = value;
      both[value] = name;
    }
    return both;
  };

  const ConnectionStatus = numbered({
    CONNECTED: 0, CONNECTING: 1, DISCONNECTED: 2, NETWORK_UNAVAILABLE: 3, CONNECTION_CLOSED: 4, KICKED_OFFLINE_BY_OTHER_CLIENT: 6,
    WEBSOCKET_UNAVAILABLE: 7, WEBSOCKET_ERROR: 8, DOMAIN_INCORRECT: 12, APPKEY_IS_FAKE: 20, ULTRALIMIT: 1101,
  });
  const ConversationType = numbered({
    NONE: 0, PRIVATE: 1, DISCUSSION: 2, GROUP: 3, CHATROOM: 4, CUSTOMER_SERVICE: 5, SYSTEM: 6, APP_PUBLIC_SERVICE: 7, PUBLIC_SERVICE: 8,
  });
  const ErrorCode = numbered({ TIMEOUT: -1, UNKNOWN: -2, MSG_LIMIT: 30016, RC_NET_CHANNEL_INVALID: 30001, RC_CONN_USER_OR_PASSWD_ERROR: 31004 });

  class MessageTag {
    constructor(isCounted, isPersited) {
      this.isCounted = isCounted;
      this.isPersited = isPersited;
    }

    getMessageTag() { return (this.isPersited ? 1 : 0) + (this.isCounted ? 2 : 0); }
  }

  // messageType → constructor, and objectName → messageType.
  const classes = {};
  const types = {};

  function register(messageType, objectName, messageTag, fields) {
    const kind = class {
      constructor(values) {
        Object.assign(this, values);
        this.messageName = messageType;
      }

      encode() { return JSON.stringify(plain(this)); }
    };
    Object.defineProperty(kind, 'name', { value: messageType });
    Object.assign(kind.prototype, { objectName, messageTag });
    kind.fields = fields;
    kind.obtain = (content) => new kind(typeof content === 'string' ? { content } : content);
    classes[messageType] = kind;
    types[objectName] = messageType;
    return kind;
  }

  /** The fields of a message, as they are sent. */
  const plain = (message) => Object.fromEntries(Object.entries(message).filter(([name, value]) => name !== 'messageName' && value !== undefined));

  const builtIn = {};
  for (const [name, objectName, isCounted, isPersisted] of [
    ['TextMessage', 'RC:TxtMsg', true, true], ['ImageMessage', 'RC:ImgMsg', true, true], ['FileMessage', 'RC:FileMsg', true, true],
    ['VoiceMessage', 'RC:VcMsg', true, true], ['RichContentMessage', 'RC:ImgTextMsg', true, true], ['LocationMessage', 'RC:LBSMsg', true, true],
    ['InformationNotificationMessage', 'RC:InfoNtf', false, true], ['CommandNotificationMessage', 'RC:CmdNtf', false, true],
    ['CommandMessage', 'RC:CmdMsg', false, false], ['GroupNotificationMessage', 'RC:GrpNtf', false, true],
    ['TypingStatusMessage', 'RC:TypSts', false, false],
  ]) builtIn[name] = register(name, objectName, new MessageTag(isCounted, isPersisted), []);

  const roomID = (room) => String(room || '').replace(/^class-/, '');
  let messages = 0;

  /** Makes the vendor's Message from a frame. */
  function messageOf({ from, object, content, at }, isMine, isKept = false) {
    const messageType = types[object] || 'UnknownMessage';
    const Kind = classes[messageType];
    messages += 1;
    const time = Date.parse(at) || Date.now();
    return {
      content: Kind ? new Kind(content) : { messageName: 'UnknownMessage', message: { objectName: object, content } },
      conversationType: ConversationType.GROUP, targetId: client.room, senderUserId: from, messageType, objectName: object,
      messageDirection: isMine ? 1 : 2, messageId: `${ConversationType.GROUP}_${messages}`, messageUId: `${at}-${from}-${messages}`, sentTime: time,
      receivedTime: Date.now(), sentStatus: isMine ? 30 : undefined, receivedStatus: 0, offLineMessage: isKept, isLocalMessage: false,
    };
  }

  /** The one client of a page. */
  const client = {
    channel: null, room: '', userId: '', status: ConnectionStatus.DISCONNECTED, onChanged: null, onReceived: null, history: [], seen: new Set(),
    waiting: [], display: '', boards: new Map(), roles: new Map(),
  };

  function setStatus(status) {
    if (client.status === status) return;
    client.status = status;
    if (client.onChanged) client.onChanged(status);
  }

  function settle(name, ...values) {
    for (const callbacks of client.waiting.splice(0)) if (callbacks && callbacks[name]) callbacks[name](...values);
  }

  const receive = (message) => { if (client.onReceived) client.onReceived(message, 0, false); };

  /** Keeps a chat message. False if it is known already. */
  function keep(frame, message) {
    const key = `${frame.at} ${frame.from} ${frame.object}`;
    if (client.seen.has(key)) return false;
    client.seen.add(key);
    client.history.push(message);
    if (client.history.length > 500) client.history.shift();
    return true;
  }

  /** Reports missed changes to apps that do not know `hello`, as ordinary messages. */
  function catchUp(channel, state) {
    const at = new Date().toISOString();
    const tell = (object, content) => receive(messageOf({ from: content.userId || client.userId, object, content, at }, false));
    for (const [userId, person] of client.roles) {
      if (!channel.people.has(userId)) tell('SC:RMCMsg', { action: 2, userId, userName: person.userName, role: person.role, timestamp: Date.now() });
    }
    const changed = [];
    for (const [userId, person] of channel.people) {
      const known = client.roles.get(userId);
      if (!known) tell('SC:RMCMsg', { ...person, action: 1, timestamp: Date.now() });
      else if (known.role !== person.role) changed.push({ userId, userName: person.userName, role: person.role });
    }
    if (changed.length) tell('SC:RCMsg', { opUserId: client.userId, users: changed });
    const boards = new Map(state.whiteboards.map((board) => [board.whiteboardId, board.name]));
    for (const [whiteboardId, whiteboardName] of client.boards) if (!boards.has(whiteboardId)) tell('SC:WBMsg', { action: 2, whiteboardId, whiteboardName });
    for (const [whiteboardId, whiteboardName] of boards) if (!client.boards.has(whiteboardId)) tell('SC:WBMsg', { action: 1, whiteboardId, whiteboardName });
    if (state.display !== client.display) tell('SC:DisplayMsg', { display: state.display });
  }

  function remember(channel) {
    client.roles = new Map([...channel.people].map(([id, person]) => [id, { ...person }]));
  }

  function openClient(token) {
    const channel = new Channel(token);
    client.channel = channel;
    client.history = [];
    client.seen = new Set();
    let isFirst = true;
    channel.on('hello', (frame) => {
      const state = (frame.state && frame.state.class) || { display: '', whiteboards: [], members: [] };
      client.room = roomID(frame.room);
      client.userId = frame.you.id;
      if (!isFirst) catchUp(channel, state);
      for (const each of (frame.state && frame.state.messages) || []) {
        const message = messageOf(each, each.from === client.userId, isFirst);
        if (keep(each, message) && !isFirst && each.from !== client.userId) receive(message);
      }
      isFirst = false;
      client.display = state.display;
      client.boards = new Map(state.whiteboards.map((board) => [board.whiteboardId, board.name]));
      remember(channel);
      setStatus(ConnectionStatus.CONNECTED);
      settle('onSuccess', client.userId);
    });
    channel.on('message', (frame) => {
      if (frame.object === 'rtc') return;
      const { object, content } = frame;
      if (object === 'SC:DisplayMsg') client.display = content.display;
      if (object === 'SC:WBMsg') {
        if (content.action === 1) client.boards.set(content.whiteboardId, content.whiteboardName);
        else client.boards.delete(content.whiteboardId);
      }
      remember(channel);
      const message = messageOf(frame, frame.from === client.userId);
      if (!object.startsWith('SC:')) keep(frame, message);
      receive(message);
    });
    channel.on('lost', () => { if (!isFirst) setStatus(ConnectionStatus.NETWORK_UNAVAILABLE); });
    channel.on('ended', (reason) => {
      if (client.channel !== channel) return;
      client.channel = null;
      const status = { replaced: ConnectionStatus.KICKED_OFFLINE_BY_OTHER_CLIENT, closed: ConnectionStatus.DISCONNECTED, kicked: ConnectionStatus.DISCONNECTED };
      if (reason === 'token') settle('onTokenIncorrect');
      else settle('onError', ErrorCode.RC_NET_CHANNEL_INVALID);
      setStatus(reason in status ? status[reason] : ConnectionStatus.CONNECTION_CLOSED);
    });
    channel.open();
  }

  class RongIMClient {
    static init() {
      if (!RongIMClient._instance) RongIMClient._instance = new RongIMClient();
      return RongIMClient._instance;
    }

    static getInstance() {
      if (!RongIMClient._instance) throw new Error('RongIMClient.init comes first.');
      return RongIMClient._instance;
    }

    static setConnectionStatusListener(listener) { client.onChanged = listener && ((status) => listener.onChanged(status)); }

    static setOnReceiveMessageListener(listener) { client.onReceived = listener && ((...values) => listener.onReceived(...values)); }

    static registerMessageType(messageType, objectName, messageTag, fields) {
      RongIMClient.RegisterMessage[messageType] = register(messageType, objectName, messageTag, fields);
    }

    static connect(token, callbacks) {
      if (client.channel) client.channel.close();
      client.waiting = [callbacks];
      setStatus(ConnectionStatus.CONNECTING);
      openClient(token);
      return RongIMClient.getInstance();
    }

    /** Only reports when the channel is open; it reconnects by itself. */
    static reconnect(callbacks) {
      const { channel } = client;
      if (!channel) setTimeout(() => callbacks && callbacks.onError && callbacks.onError(ErrorCode.RC_NET_CHANNEL_INVALID));
      else if (channel.isOpen) setTimeout(() => callbacks && callbacks.onSuccess && callbacks.onSuccess(client.userId));
      else {
        client.waiting.push(callbacks);
        channel.wake();
      }
    }

    getCurrentConnectionStatus() { return client.status; }

    getCurrentUserId() { return client.userId; }

    sendMessage(conversationType, targetId, message, callbacks = {}) {
      const { channel } = client;
      const at = new Date().toISOString();
      const object = message.objectName || (classes[message.messageName] || { prototype: {} }).prototype.objectName;
      const frame = { from: client.userId, object, content: plain(message), at };
      const sent = messageOf(frame, true);
      if (callbacks.onBefore) callbacks.onBefore(sent.messageId);
      (channel ? channel.send(object, frame.content) : Promise.reject(new Error('lost'))).then(() => {
        keep(frame, sent);
        if (callbacks.onSuccess) callbacks.onSuccess(sent);
      }, (error) => {
        if (callbacks.onError) callbacks.onError(error.code === 'invalid' ? ErrorCode.MSG_LIMIT : ErrorCode.RC_NET_CHANNEL_INVALID, sent);
      });
    }

    /** The class's most recent messages, as far as the server keeps them. */
    getHistoryMessages(conversationType, targetId, timestamp, count, callbacks) {
      const before = timestamp > 0 ? client.history.filter((message) => message.sentTime < timestamp) : client.history;
      const list = before.slice(-count);
      setTimeout(() => callbacks.onSuccess(list, before.length > list.length));
    }

    disconnect() { if (client.channel) client.channel.close(); }

    logout() { this.disconnect(); }

    // This server does not store files.
    getFileToken(type, callbacks) { setTimeout(() => callbacks.onError(ErrorCode.UNKNOWN)); }

    getFileUrl(type, fileName, originalName, callbacks) { setTimeout(() => callbacks.onError(ErrorCode.UNKNOWN)); }
  }
  RongIMClient.RegisterMessage = {};
  RongIMClient.MessageType = Object.fromEntries(Object.keys(builtIn).map((name) => [name, name]));

  window.RongIMLib = Object.assign(window.RongIMLib || {}, {
    ...builtIn, RongIMClient, MessageTag, ConnectionStatus, ConversationType, ErrorCode, MessageDirection: numbered({ SEND: 1, RECEIVE: 2 }),
    FileType: numbered({ IMAGE: 1, AUDIO: 2, VIDEO: 3, FILE: 4 }), SentStatus: numbered({ SENDING: 10, FAILED: 20, SENT: 30, RECEIVED: 40, READ: 50 }),
  });

  // MARK: RongRTC

  const StreamType = { NODE: -1, NONE: -1, AUDIO: 0, VIDEO: 1, AUDIO_AND_VIDEO: 2 };
  const StreamSize = { MAX: 1, MIN: 2 };
  const rtcError = (code, msg) => ({ code, msg });
  const typeOf = ({ video, audio }) => (video && audio ? StreamType.AUDIO_AND_VIDEO : video ? StreamType.VIDEO : audio ? StreamType.AUDIO : StreamType.NONE);
  const isOn = (tracks) => tracks.some((track) => track.enabled);

  class RongRTC {
    constructor(options = {}) {
      const rtc = this;
      let mesh = null;
      let inRoom = {};
      let inStream = {};
      // "id tag" → the known data of another member's stream.
      const streams = new Map();
      const report = (listeners, name, user) => { if (typeof listeners[name] === 'function') listeners[name](user); };
      const remote = (id, tag) => streams.get(`${id} ${tag}`);
      const userOf = (id, tag) => {
        const { stream, state } = remote(id, tag);
        const type = typeOf({ video: stream.getVideoTracks().length > 0, audio: stream.getAudioTracks().length > 0 });
        return { id, stream: { tag, type, mediaStream: stream, enable: { ...state } } };
      };
      Object.assign(rtc, { StreamType, StreamSize, options });

      const switches = (kind, on) => (user) => {
        const tag = (user.stream && user.stream.tag) || 'RongCloudRTC';
        const isMine = mesh && mesh.channel.you && user.id === mesh.channel.you.id;
        if (isMine) mesh.set(tag, kind, on);
        else if (remote(user.id, tag)) for (const track of remote(user.id, tag).stream.getTracks()) if (track.kind === kind) track.enabled = on;
        return Promise.resolve(user);
      };

      rtc.Room = class {
        constructor(room = {}) {
          this.id = room.id;
          inRoom = room;
        }

        join(user) {
          const { channel } = client;
          if (!channel || !channel.isOpen) return Promise.reject(rtcError(50001, 'The IM client is not connected.'));
          if (mesh) mesh.stop();
          streams.clear();
          const here = new Mesh(channel);
          mesh = here;
          here.on('joined', (id) => report(inRoom, 'joined', { id }));
          here.on('left', (id) => report(inRoom, 'left', { id }));
          here.on('stream', (id, tag, stream, state) => {
            const key = `${id} ${tag}`;
            if (!stream) {
              streams.delete(key);
              report(inStream, 'unpublished', { id, stream: { tag, type: StreamType.AUDIO_AND_VIDEO } });
              return;
            }
            streams.set(key, { stream, state });
            const { mediaStream, ...known } = userOf(id, tag).stream;
            report(inStream, 'published', { id, stream: known });
          });
          here.on('changed', (id, tag, state, former) => {
            if (remote(id, tag)) remote(id, tag).state = state;
            const user = { id, stream: { tag, type: StreamType.AUDIO_AND_VIDEO } };
            if (state.video !== former.video) report(inStream, state.video ? 'enabled' : 'disabled', { ...user, stream: { ...user.stream } });
            if (state.audio !== former.audio) report(inStream, state.audio ? 'unmuted' : 'muted', { ...user, stream: { ...user.stream } });
          });
          here.start();
          return Promise.resolve(user);
        }

        leave() {
          if (mesh) mesh.stop();
          mesh = null;
          streams.clear();
          return Promise.resolve();
        }
      };

      rtc.Stream = class {
        constructor(listeners = {}) {
          inStream = listeners;
          this.audio = { mute: switches('audio', false), unmute: switches('audio', true) };
          this.video = { disable: switches('video', false), enable: switches('video', true) };
        }

        publish(user) {
          if (!mesh) return Promise.reject(rtcError(50002, 'No room has been joined.'));
          const stream = user.stream.mediaStream;
          mesh.publish(user.stream.tag, stream, { video: isOn(stream.getVideoTracks()), audio: isOn(stream.getAudioTracks()) });
          return Promise.resolve(user);
        }

        unpublish(user) {
          if (!mesh) return Promise.reject(rtcError(50002, 'No room has been joined.'));
          const local = mesh.local.get(user.stream.tag);
          mesh.unpublish(user.stream.tag);
          // Otherwise the camera's light would stay on after the member stops sending.
          if (local) for (const track of local.stream.getTracks()) track.stop();
          return Promise.resolve(user);
        }

        subscribe(user) {
          const { id, stream: { tag } } = user;
          if (!remote(id, tag)) return Promise.reject(rtcError(50003, 'There is no such stream.'));
          user.stream = { ...user.stream, ...userOf(id, tag).stream };
          return Promise.resolve(user);
        }

        // Every stream arrives in its full size, so there is nothing to switch.
        unsubscribe(user) { return Promise.resolve(user); }

        resize(user) { return Promise.resolve(user); }
      };
    }

    destroy() {}
  }
  Object.assign(RongRTC, { StreamType, StreamSize });
  window.RongRTC = RongRTC;
}());
