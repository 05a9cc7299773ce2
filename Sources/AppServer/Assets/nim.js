// Replaces the vendor's script for chat rooms, SDK.NIM and SDK.Chatroom, over this server's channel. A classic script that sets globals.
//
// A chat room is the room m-<chatroomId>. One socket carries both messages and the queue for its Chatroom, and commands for the NIM of the same
// account. A lost connection is opened again, and the queue is then sent anew.
(() => {
  'use strict';

  // The server that this script comes from, which may differ from the page's.
  const origin = new URL(document.currentScript?.src || location.href, location.href).origin;
  const notOpen = 'Error_Connection_Socket_State_not_Match';
  const pingEveryMs = 15000;
  const deadMs = 45000;
  const longestWaitMs = 15000;
  // 4001 another login of the account, 4002 kicked, 4003 refused, 4004 the room has ended.
  const final = { 4001: 'samePlatformKick', 4002: 'managerKick', 4003: 'refused', 4004: 'chatroomClosed' };
  const instances = { nim: new Map(), chatroom: new Map() };
  let count = 0;

  /** Calls one of the page's functions, if there is one. Its errors do not disturb this script. */
  function tell(owner, name, ...values) {
    const callback = owner?.[name];
    if (typeof callback !== 'function') return;
    try { callback(...values); } catch (error) { setTimeout(() => { throw error; }); }
  }

  const problem = (code, message) => ({ code, message });

  function newId() {
    count += 1;
    return `${Date.now().toString(36)}-${count}`;
  }

  /** The channel of one room, for one account. `listener`: hello, frame, lost, over. */
  class Channel {
    constructor(room, token, listener) {
      this.address = `${origin.replace(/^http/, 'ws')}/channel?${new URLSearchParams({ token, room })}`;
      this.listener = listener;
      this.asked = new Map();
      this.ref = 0;
      this.tries = 0;
      this.isWanted = true;
      this.onOnline = () => { if (this.isWanted && !this.socket) this.open(); };
      addEventListener('online', this.onOnline);
      this.open();
    }

    get isOpen() { return this.socket?.readyState === WebSocket.OPEN && this.isGreeted; }

    open() {
      clearTimeout(this.timer);
      let refusal = null;
      const socket = new WebSocket(this.address);
      this.socket = socket;
      this.isGreeted = false;
      let ping = 0, heardMs = performance.now();
      socket.onopen = () => {
        heardMs = performance.now();
        // A dead connection sends no close event.
        ping = setInterval(() => {
          if (performance.now() - heardMs > deadMs) socket.close();
          else socket.send('{"type":"ping"}');
        }, pingEveryMs);
      };
      socket.onmessage = (event) => {
        heardMs = performance.now();
        let frame;
        try { frame = JSON.parse(event.data); } catch { return; }
        if (frame.type === 'ack' || frame.type === 'error') {
          if (frame.type === 'error' && frame.ref == null) refusal = frame;
          this.settle(frame);
        } else if (frame.type === 'hello') {
          this.isGreeted = true;
          this.tries = 0;
          this.listener.hello(frame);
        } else {
          this.listener.frame(frame);
        }
      };
      socket.onclose = (event) => {
        clearInterval(ping);
        if (socket !== this.socket) return;
        this.socket = null;
        for (const done of this.asked.values()) done(problem(notOpen, 'The connection was lost.'));
        this.asked.clear();
        if (!this.isWanted) return;
        if (final[event.code]) {
          this.end();
          this.listener.over({ ...problem(refusal?.code || 'kicked', refusal?.message || event.reason), reason: final[event.code] });
          return;
        }
        this.tries += 1;
        // Spread at random, so that not all clients come back at once.
        const wait = Math.min(250 * 2 ** this.tries, longestWaitMs) * (0.75 + Math.random() / 2);
        this.listener.lost(this.tries, Math.round(wait));
        this.timer = setTimeout(() => this.open(), wait);
      };
    }

    settle({ type, ref, data, code, message }) {
      const done = this.asked.get(ref);
      if (!done) return;
      this.asked.delete(ref);
      done(type === 'ack' ? null : problem(code, message), data);
    }

    /** `done(error, data)` is always called, and never before this returns. */
    ask(frame, done) {
      if (!this.isOpen) return setTimeout(done, 0, problem(notOpen, 'There is no connection.'));
      this.ref += 1;
      this.asked.set(this.ref, done);
      this.socket.send(JSON.stringify({ ...frame, ref: this.ref }));
    }

    end() {
      this.isWanted = false;
      clearTimeout(this.timer);
      removeEventListener('online', this.onOnline);
      this.socket?.close(1000);
    }
  }

  /** Personal messages. A NIM has no connection of its own; it counts as connected at once. */
  class NIM {
    static getInstance(options) {
      const known = instances.nim.get(options.account);
      const nim = known || new NIM();
      nim.options = known ? { ...known.options, ...options } : options;
      instances.nim.set(options.account, nim);
      nim.account = options.account;
      if (!nim.isConnected) nim.connect();
      return nim;
    }

    /** For the vendor's plug-ins, which are not supported here. */
    static use() {}

    connect() {
      this.isConnected = true;
      // Delayed, because pages get the instance before its first callback.
      setTimeout(() => { if (this.isConnected) tell(this.options, 'onconnect', { lastLoginDeviceId: null }); });
    }

    isLoggedIn() { return this.isConnected; }

    getChatroomAddress({ chatroomId, done } = {}) {
      const isNumber = /^\d+$/.test(String(chatroomId));
      setTimeout(() => tell({ done }, 'done', isNumber ? null : problem(414, 'chatroomId: expected a number'), { chatroomId, address: isNumber ? [origin] : [] }));
    }

    /** Sends to the machine of a room that the account is in. Of several rooms, it takes the one whose machine is named, otherwise the latest. */
    sendCustomSysMsg(options) {
      const { to, content, done } = options;
      const rooms = [...instances.chatroom.values()].filter((room) => room.account === this.account && room.channel);
      const room = rooms.find((each) => each.host?.name === to || each.host?.id === to) || rooms.at(-1);
      const message = {
        ...options, done: undefined, idClient: newId(), type: 'custom', from: this.account, time: Date.now(), status: this.isConnected && room ? 'success' : 'fail',
      };
      if (!this.isConnected || !room) {
        setTimeout(() => tell({ done }, 'done', problem(notOpen, 'The account is in no chat room.'), message));
      } else {
        // Only the machine accepts commands, so no name is needed.
        room.channel.ask({ type: 'command', content }, (error) => tell({ done }, 'done', error, { ...message, status: error ? 'fail' : 'success' }));
      }
      return message;
    }

    disconnect({ done } = {}) {
      const was = this.isConnected;
      this.isConnected = false;
      setTimeout(() => {
        if (was) tell(this.options, 'ondisconnect', problem('logout', 'The page has disconnected.'));
        tell({ done }, 'done', null);
      });
    }

    destroy(options = {}) {
      instances.nim.delete(this.account);
      this.disconnect(options);
    }
  }

  /** A machine's room: chat, presence and the queue. */
  class Chatroom {
    static getInstance(options) {
      const key = `${options.account} ${options.chatroomId}`;
      const known = instances.chatroom.get(key);
      const room = known || new Chatroom(key);
      room.options = known ? { ...known.options, ...options } : options;
      instances.chatroom.set(key, room);
      room.account = options.account;
      if (!room.channel) room.connect();
      return room;
    }

    constructor(key) {
      this.key = key;
      this.names = new Map();
      this.queue = [];
      this.host = null;
    }

    connect() {
      this.isGreeted = false;
      this.channel = new Channel(`m-${this.options.chatroomId}`, this.options.token, this);
    }

    // Frames of the channel.

    hello(frame) {
      const isBack = this.isGreeted;
      const former = this.queue;
      const wasPlaying = this.isPlaying;
      this.isGreeted = true;
      this.noteTurn(frame.state.machine?.turn);
      this.queue = frame.state.queue.map(({ key, value }) => ({ key, value }));
      for (const member of [...frame.members, frame.you]) this.know(member);
      const { id, name } = frame.you;
      tell(this.options, 'onconnect', {
        chatroom: { id: String(this.options.chatroomId), name: frame.state.machine?.name || '' }, member: { account: id, nick: name, type: 'guest' },
      });
      if (!isBack) return;
      // The game has ended in the meantime, for instance by a restart of the server. Clients leave their game only after a result.
      if (wasPlaying && !this.isPlaying) this.command({ from: this.host?.id ?? 'host', content: { command: 4, data: 'false' } });
      // The changes in the meantime are unknown: report the members that are gone, then all that are present.
      const gone = former.filter((entry) => !this.queue.some(({ key }) => key === entry.key));
      this.show([...gone.map((entry) => this.change('POLL', entry)), ...this.queue.map((entry) => this.change('OFFER', entry))]);
    }

    frame(frame) {
      const { type, action, key, value, member } = frame;
      if (type === 'command') return this.command(frame);
      if (type === 'message') return this.message(frame);
      if (type === 'turn') return this.noteTurn(frame);
      if (type === 'presence') {
        this.know(member);
        // A member that is only away comes back or leaves soon.
        if (action === 'join' || action === 'leave') {
          this.show([this.notification({ type: action === 'join' ? 'memberEnter' : 'memberExit', from: this.accountOf(member.id), fromNick: member.name,
            to: [this.accountOf(member.id)], toNick: [member.name] }, member.id)]);
        }
      } else if (type === 'queue') {
        this.queue = action === 'OFFER' && this.queue.some((entry) => entry.key === key)
          ? this.queue.map((entry) => (entry.key === key ? { key, value } : entry))
          : [...this.queue.filter((entry) => entry.key !== key), ...(action === 'OFFER' ? [{ key, value }] : [])];
        // Clients notice the end of their own place only by POLL.
        this.show([this.change(action === 'DROP' && key === this.account ? 'POLL' : action, { key, value })]);
      }
    }

    noteTurn(turn) { this.isPlaying = turn?.player === this.account && (turn.phase === 'playing' || turn.phase === 'settling'); }

    lost(retryCount, duration) {
      // A page waits for either callback before the first hello.
      if (!this.isGreeted && retryCount === 1) tell(this.options, 'onerror', problem('Error_Connection_Socket', 'The server cannot be reached, or refuses the token.'));
      tell(this.options, 'onwillreconnect', { retryCount, duration });
      tell(this.nim?.options, 'onwillreconnect', { retryCount, duration });
    }

    over(error) {
      this.channel = null;
      this.queue = [];
      if (!this.isGreeted) tell(this.options, 'onerror', error);
      tell(this.options, 'ondisconnect', error);
    }

    get nim() { return instances.nim.get(this.account); }

    know(member) {
      if (member.role === 'host') this.host = member;
      this.names.set(member.id, member.name);
    }

    /** A machine's account is its member's name. */
    accountOf(id) { return this.host && id === this.host.id ? this.host.name : id; }

    // Messages to the page.

    command({ from, content }) {
      const nim = this.nim;
      if (!nim?.isConnected) return;
      tell(nim.options, 'oncustomsysmsg', {
        scene: 'p2p', type: 'custom', from: this.accountOf(from), to: this.account, time: Date.now(), idServer: newId(), sendToOnlineUsersOnly: true,
        content: typeof content === 'string' ? content : JSON.stringify(content),
      });
    }

    base(from, flow) {
      return {
        chatroomId: String(this.options.chatroomId), idClient: newId(), from: this.accountOf(from), fromNick: this.names.get(from) || '', time: Date.now(),
        flow, status: 'success', resend: false,
      };
    }

    message({ from, object, content, at }) {
      const base = { ...this.base(from, from === this.account ? 'out' : 'in'), time: Date.parse(at) };
      if (object === 'text' || object === 'chat') this.show([{ ...base, type: 'text', text: typeof content === 'string' ? content : JSON.stringify(content) }]);
      else if (object === 'custom') this.show([{ ...base, type: 'custom', content: typeof content === 'string' ? content : JSON.stringify(content) }]);
    }

    notification(attach, from) { return { ...this.base(from, 'in'), type: 'notification', attach }; }

    change(type, { key, value }) {
      const queueChange = { type, elementKey: key, elementValue: value };
      return this.notification({ type: 'updateQueue', from: key, fromNick: this.names.get(key) || '', queueChange }, key);
    }

    show(messages) { if (messages.length) tell(this.options, 'onmsgs', messages); }

    // Calls of the page.

    ask(frame, done) {
      if (this.channel) this.channel.ask(frame, done);
      else setTimeout(done, 0, problem(notOpen, 'The chat room is not connected.'));
    }

    /** Places are always transient here: a member that is away too long loses its place. */
    queueOffer(options) {
      const { elementKey, elementValue, done } = options;
      if (elementKey && elementKey !== this.account) {
        return setTimeout(() => tell({ done }, 'done', problem(403, 'Only one\'s own account can be put into the queue.'), options, {}));
      }
      this.ask({ type: 'queue.offer', value: String(elementValue) }, (error) => tell({ done }, 'done', error, options, {}));
    }

    queuePoll(options = {}) {
      const { elementKey, done } = options;
      const key = elementKey || this.queue[0]?.key || '';
      const found = this.queue.find((entry) => entry.key === key);
      const frame = key ? { type: 'queue.poll', key } : { type: 'queue.poll' };
      this.ask(frame, (error) => tell({ done }, 'done', error, options, error ? {} : { elementKey: key, elementValue: found?.value || '' }));
    }

    queueList(options = {}) {
      this.ask({ type: 'queue.list' }, (error, list) => {
        if (!error) this.queue = list.map(({ key, value }) => ({ key, value }));
        tell(options, 'done', error, options, error ? {} : { queueList: list.map(({ key, value }) => ({ [key]: value })) });
      });
    }

    queuePeak(options = {}) {
      this.ask({ type: 'queue.list' }, (error, list) => {
        const [first] = list || [];
        tell(options, 'done', error, options, first ? { elementKey: first.key, elementValue: first.value } : {});
      });
    }

    sendText(options) { return this.send('text', { text: options.text }, options.text, options.done); }

    sendCustomMsg(options) { return this.send('custom', { content: options.content }, options.content, options.done); }

    send(type, members, content, done) {
      const message = { ...this.base(this.account, 'out'), type, ...members };
      this.ask({ type: 'send', object: type, content }, (error) => {
        tell({ done }, 'done', error, { ...message, status: error ? 'fail' : 'success' });
      });
      return { ...message, status: 'sending' };
    }

    disconnect({ done } = {}) {
      const { channel } = this;
      this.channel = null;
      this.queue = [];
      channel?.end();
      setTimeout(() => {
        if (channel) tell(this.options, 'ondisconnect', problem('logout', 'The page has disconnected.'));
        tell({ done }, 'done', null);
      });
    }

    destroy(options = {}) {
      instances.chatroom.delete(this.key);
      this.disconnect(options);
    }
  }

  window.SDK = { ...window.SDK, NIM, Chatroom };
  window.NIM = NIM;
  window.Chatroom = Chatroom;
})();
