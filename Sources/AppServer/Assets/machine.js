// The claw machines' page: the list of machines, and a machine's room with its picture, queue, game and chat. With ?host=1 it makes a machine.

import { $, Waits, addLine, countDown, make, say, socketAddress, speak } from '/demo/demo.js';
import { LivePlayer } from '/demo/live-player.js';

const word = speak({
  title: ['Claw machines', '抓娃娃机'], back: ['All machines', '全部机器'], more: ['Show more', '显示更多'],
  getting: ['Getting the list…', '正在获取列表…'], none: ['There is no machine at the moment.', '目前没有机器。'],
  some: ['Machines: {count}', '机器：{count} 台'], people: ['People: {count}', '人数：{count}'], waiting: ['In the queue: {count}', '排队：{count}'],
  live0: ['No picture', '没有画面'], live1: ['Live', '直播中'], live2: ['The picture is switched off', '画面已停用'], live3: ['Live', '直播中'],
  closedShort: ['Closed', '暂停开放'], openShort: ['Open', '开放中'],
  unlisted: ['This machine is not in the list: it is gone, or its owner does not show it.', '列表中没有这台机器：它已不存在，或主人没有公开它。'],
  picture: ['Picture of the machine', '机器画面'], camera: ['Camera {number}', '镜头 {number}'], other: ['Switch to camera {number}', '切换到镜头 {number}'],
  noPicture: ['No picture at the moment. Waiting for the camera…', '暂时没有画面，正在等待镜头…'], pictureComes: ['The picture is coming…', '正在加载画面…'],
  cannotPlay: ['This browser cannot play the picture.', '此浏览器无法播放画面。'], clickToPlay: ['Press the picture to play.', '点击画面开始播放。'],
  game: ['Game', '游戏'], queue: ['Queue', '排队'], unqueue: ['Leave the queue', '退出排队'], here: ['Open it here', '在此打开'],
  queueTitle: ['Queue', '队列'], nobody: ['Nobody is in the queue.', '没有人排队。'], you: ['you', '你'], plays: ['plays', '游戏中'], called: ['is called', '被叫到'],
  place: ['You are number {place} of {count}.', '你排在第 {place} 位，共 {count} 人。'],
  free: ['Queue up to play.', '排队即可开始游戏。'], next: ['You are next. Stay on this page: you will be called.', '下一个就是你，请留在此页面等待呼叫。'],
  ahead: ['You are in the queue. Ahead of you: {count}.', '你在排队，前面还有 {count} 人。'],
  invited: ['{name} is called to play.', '正在呼叫 {name}。'], watching: ['{name} is playing.', '{name} 正在游戏。'],
  watchingDrop: ['{name} has dropped the claw.', '{name} 已下爪。'],
  yours: ['It is your turn: will you play?', '轮到你了，要开始吗？'], playing: ['You are playing. Move the claw, then drop it.', '正在游戏：移动爪子，然后下爪。'],
  settling: ['The claw is on its way. Wait for the result…', '爪子已下，请等待结果…'],
  won: ['You won!', '恭喜，抓到了！'], lost: ['Nothing caught this time.', '很遗憾，没有抓到。'],
  declined: ['You have given your turn up.', '你放弃了这次机会。'], missed: ['You did not answer in time, and have lost your place.', '你没有及时回应，已退出队列。'],
  interrupted: ['You are out of the queue: the connection was away for too long, or your game was cut short.', '你已不在队列中：断线太久，或游戏被中断。'],
  left: ['You have left the queue.', '你已退出队列。'], removed: ['You were taken out of the queue.', '你被移出了队列。'],
  closed: ['This machine is closed. Nobody is called until it opens.', '机器暂停开放，开放前不会叫号。'],
  noDevice: ['The machine itself is not connected. Nobody is called until it is back.', '机器未连接，恢复前不会叫号。'],
  paused: ['The queue is paused: nobody is called, and it takes nobody new.', '队列已暂停：不叫号，也不接受新的排队。'],
  inviteTitle: ['It is your turn', '轮到你了'], inviteText: ['Play now? Without an answer you lose your place.', '现在开始吗？不回应将失去位置。'],
  accept: ['Play', '开始游戏'], decline: ['Not now', '放弃'], tooLate: ['That was too late.', '已经晚了。'],
  denied: ['The machine did not take that.', '机器没有接受此操作。'],
  controls: ['Controls of the claw: arrow keys, and the space bar to drop', '爪子控制：方向键移动，空格键下爪'],
  up: ['Back', '后'], down: ['Front', '前'], leftWord: ['Left', '左'], right: ['Right', '右'], drop: ['Drop', '下爪'],
  keys: ['Arrow keys move the claw, the space bar drops it.', '方向键移动爪子，空格键下爪。'],
  chat: ['Chat', '聊天'], message: ['Message', '消息'], send: ['Send', '发送'], guest: ['Guest', '游客'], machineName: ['Machine', '机器'],
  came: ['{name} came in.', '{name} 进入房间。'], went: ['{name} has left.', '{name} 离开了。'],
  connecting: ['Connecting…', '正在连接…'], connected: ['You are {name}.', '你是 {name}。'],
  cut: ['The connection was lost. Trying again…', '连接已断开，正在重试…'], unsent: ['There is no connection: this was not sent.', '没有连接，未能发送。'],
  replaced: ['This account has opened a machine in another window.', '此账号已在其他窗口打开机器。'],
  kicked: ['You were removed from this room.', '你已被移出房间。'], ended: ['This machine is gone.', '这台机器已不存在。'],
  full: ['This room is full. Come back later.', '房间已满，请稍后再来。'], refused: ['The server did not let you in: {why}', '服务器拒绝进入：{why}'],
  queueFull: ['The queue is full. Try again later.', '队列已满，请稍后再试。'], error: ['The server refused this: {why}', '服务器拒绝：{why}'],
  unreachable: ['The server cannot be reached. Trying again…', '无法连接服务器，正在重试…'], offline: ['The server cannot be reached. Try again.', '无法连接服务器，请重试。'],
  code400: ['That is not possible: {detail}', '无法执行：{detail}'], code401: ['Your guest account has expired. Load the page again.', '你的游客账号已过期，请重新加载页面。'],
  code404: ['This server does not know what the page asked. Load it again.', '服务器不认识该请求，请重新加载页面。'],
  code800: ['The server cannot do this now: {detail}', '服务器现在无法执行：{detail}'], code804: ['There is no such machine.', '没有这台机器。'],
  code403: ['This server does not let your address in.', '服务器不允许你的地址访问。'],
  code407: ['Too many requests from your address. Wait a little.', '你的地址请求过多，请稍候。'],
  code906: ['Another machine is just being made under this account. Try again.', '账号重复，请重试。'],
  code1101: ['Your address has had all its guest accounts of today.', '你的地址今天的游客账号已用完。'],
  host403: ['Machines are made from addresses in the setting apps.machine.hostFrom; yours is not.', '只有 apps.machine.hostFrom 中的地址可以创建机器。'],
  hostTitle: ['Make a machine', '创建机器'], hostName: ['Name of the machine', '机器名称'], make: ['Make it', '创建'], making: ['Making it…', '正在创建…'],
  madeIt: ['Machine {number} is made, open, and in the list.', '机器 {number} 已创建、开放并列出。'],
  hostCameras: ['Two cameras, each in a terminal of its own:', '两个镜头，各用一个终端：'],
  hostMachine: ['The machine itself, from the folder of the server’s source:', '机器本身，在服务器源码目录下运行：'],
  visit: ['Go to this machine', '进入这台机器'], copy: ['Copy', '复制'], copied: ['Copied', '已复制'],
});

const listPage = 50;
const listEveryMs = 4000;
const pingEveryMs = 15000;
const deadMs = 45000;
/** Guests' tokens are valid for six hours. */
const renewAfterMs = 5 * 3600 * 1000;
const chatObject = 'text';

// MARK: The API and the account

/** The server's clock minus ours. Small differences are ignored: the header has whole seconds. */
let clockMs = 0;
let account = null;

class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** Throws a Refusal; its code is 0 when there is no answer. */
async function call(path, parameters = {}) {
  let answer, body;
  try {
    answer = await fetch(`/dollsCatcher/${path}`, { method: 'POST', body: new URLSearchParams(parameters) });
    body = await answer.json();
  } catch {
    throw new Refusal(0, word('offline'));
  }
  const date = Date.parse(answer.headers.get('date') || '');
  const difference = date + 500 - Date.now();
  clockMs = Math.abs(difference) > 2000 ? difference : 0;
  if (body.code === 200) return body.data;
  const detail = `${body.msg || body.message || answer.status}`;
  const known = word(`code${body.code}`, { detail });
  throw new Refusal(body.code, known === `code${body.code}` ? detail : known);
}

/** The account is kept in sessionStorage, so that two tabs are two players. */
async function logIn() {
  const sid = sessionStorage.getItem('sid');
  account = { ...await call('tourist', sid ? { sid } : {}), atMs: Date.now() };
  sessionStorage.setItem('sid', account.accid);
}

/** `mayRenew` is false inside a room, which keeps its account even when the server has forgotten it. */
async function rooms(limit, offset, mayRenew = true) {
  if (!account) await logIn();
  try {
    return await call('room/list', { sid: account.accid, limit, offset });
  } catch (error) {
    // The server has forgotten the account, as after a restart.
    if (error.code !== 401 || !mayRenew) throw error;
    await logIn();
    return call('room/list', { sid: account.accid, limit, offset });
  }
}

// MARK: The list

let shown = listPage;
let listTimer = 0;
/** Counts views, so that a late answer for an earlier view is not shown. */
let view = 0;

function card(machine) {
  return make('li', {}, make('a', { class: 'panel', href: `#${machine.roomId}`, data: { room: machine.roomId } },
    make('h2', {}, machine.name),
    make('p', { class: machine.roomStatus ? 'good' : 'bad' }, word(machine.roomStatus ? 'openShort' : 'closedShort')),
    make('p', { class: hasPicture(machine) ? '' : 'quiet' }, word(`live${machine.liveStatus}`)),
    make('p', { class: 'quiet' }, `${word('people', { count: machine.onlineUserCount })} · ${word('waiting', { count: machine.queueCount })}`)));
}

async function showList() {
  const here = view;
  clearTimeout(listTimer);
  try {
    const cards = [];
    let total = 0;
    do {
      const page = await rooms(listPage, cards.length);
      total = page.total;
      cards.push(...page.list.map(card));
      if (page.list.length === 0) break;
    } while (cards.length < Math.min(shown, total));
    if (here !== view) return;
    // A focused card keeps the focus.
    const focused = document.activeElement?.dataset?.room;
    $('machines').replaceChildren(...cards);
    if (focused) $('machines').querySelector(`[data-room="${CSS.escape(focused)}"]`)?.focus();
    $('more').hidden = cards.length >= total;
    say(total === 0 ? word('none') : word('some', { count: total }));
  } catch (error) {
    if (here !== view) return;
    say(error.code === 0 ? word('unreachable') : error.message, true);
  }
  listTimer = setTimeout(() => { if (here === view) showList(); }, document.hidden ? 10 * listEveryMs : listEveryMs);
}

/** The room's entry in the list, with the URLs of its pictures; undefined if it is not listed. */
async function find(id, mayRenew = true) {
  for (let offset = 0; ; offset += 100) {
    const page = await rooms(100, offset, mayRenew);
    const found = page.list.find((machine) => String(machine.roomId) === id);
    if (found || page.list.length === 0 || offset + 100 >= page.total) return found;
  }
}

// MARK: The connection

let room = null;
let stopClock = () => {};
let stopInvite = () => {};

function newRoom(machine) {
  return {
    machine, camera: 1, player: null, pictures: 0, pictureTimer: 0, socket: null, timer: 0, ping: 0, waits: new Waits(), fails: 0, heardMs: 0, ref: 0, asked: new Map(),
    // The server's state; null before its hello.
    state: null, turn: { phase: 'idle' }, members: new Map(), names: new Map(), queue: [],
    // The outcome of our own turn: {key, isGood}. `answered`: the invitation that we have answered.
    outcome: null, answered: null, isDeclining: false, isLeaving: false, over: null,
  };
}

function open() {
  const here = room;
  clearTimeout(here.timer);
  // A picture's WebSocket that is still connecting would block this one (RFC 6455 §4.1); the picture starts again with the hello.
  if (here.player && here.player.socket?.readyState !== WebSocket.OPEN) stopPicture(here);
  const socket = new WebSocket(socketAddress('/channel', { token: account.imToken, room: `m-${here.machine.roomId}` }));
  here.socket = socket;
  let wasOpen = false, refusal = null;
  if (!here.state) say(word('connecting'));
  socket.addEventListener('open', () => {
    wasOpen = true;
    here.heardMs = performance.now();
    // A dead connection sends no close event.
    here.ping = setInterval(() => {
      if (performance.now() - here.heardMs > deadMs) socket.close();
      else socket.send('{"type":"ping"}');
    }, pingEveryMs);
  });
  socket.addEventListener('message', (event) => {
    if (here !== room || socket !== here.socket) return;
    here.heardMs = performance.now();
    let frame;
    try { frame = JSON.parse(event.data); } catch { return; }
    if (frame.type === 'error' && frame.ref == null) refusal = frame;
    hear(frame);
  });
  socket.addEventListener('close', (event) => {
    clearInterval(here.ping);
    if (here !== room || socket !== here.socket) return;
    here.socket = null;
    release();
    for (const { reject } of here.asked.values()) reject(new Refusal('lost', word('cut')));
    here.asked.clear();
    closeInvite();
    const final = { 4001: 'replaced', 4002: 'kicked', 4003: 'refused', 4004: 'ended' }[event.code];
    if (final) {
      const text = refusal?.code === 'full' ? word('full') : refusal?.code === 'no_such_room' ? word('ended')
        : word(final, { why: refusal?.message || event.reason });
      here.over = { key: final, text };
      if (final !== 'replaced') {
        stopPicture(here);
        sayOfPicture('');
      }
      return render();
    }
    here.fails = wasOpen ? 0 : here.fails + 1;
    render();
    here.timer = setTimeout(() => reopen(here), here.waits.take());
  });
}

/** Keeps the token while it is valid: another account would start at the queue's end. */
async function reopen(here) {
  if (Date.now() - account.atMs > renewAfterMs || here.fails > 4) {
    try { await logIn(); here.fails = 0; } catch { /* The server is away; the next try says so again. */ }
  }
  if (here === room && !here.socket && !here.over) open();
}

const isOpen = () => room?.socket?.readyState === WebSocket.OPEN && room.state !== null;

/** Sends a frame. Resolves with its answer, or rejects with a Refusal. */
function ask(frame) {
  if (!isOpen()) return Promise.reject(new Refusal('lost', word('unsent')));
  const ref = room.ref += 1;
  room.socket.send(JSON.stringify({ ...frame, ref }));
  return new Promise((resolve, reject) => room.asked.set(ref, { resolve, reject }));
}

function complain(error) {
  const key = { queue_full: 'queueFull', queue_paused: 'paused' }[error.code];
  say(key ? word(key) : error.code === 'lost' ? error.message : word('error', { why: error.message }), true);
}

const nameOf = (id) => room.names.get(id) || word('guest');
const me = () => account.accid;

function know(member) {
  room.members.set(member.id, member);
  room.names.set(member.id, member.name);
}

const frames = {
  hello(frame) {
    const { state } = frame;
    room.waits.reset();
    room.members = new Map();
    for (const member of [...frame.members, frame.you]) know(member);
    const stood = room.queue.some((entry) => entry.key === me());
    room.queue = state.queue;
    room.state = { isPaused: state.isPaused, ...state.machine };
    setTurn(state.machine.turn);
    $('lines').replaceChildren();
    for (const message of state.messages) chat(message);
    const stands = room.queue.some((entry) => entry.key === me());
    if (stands) room.outcome = null;
    else if (stood) room.outcome = { key: 'interrupted' };
    room.isDeclining = room.isLeaving = false;
    say(word('connected', { name: frame.you.name }));
    if (!room.player) showPicture();
  },
  presence({ action, member }) {
    if (action === 'leave') room.members.delete(member.id); else know(member);
    if (member.role === 'host' || action === 'away' || action === 'back') return;
    addLine($('lines'), '', word(action === 'join' ? 'came' : 'went', { name: member.name }), true);
  },
  queue({ action, key, value }) {
    const at = room.queue.findIndex((entry) => entry.key === key);
    if (action !== 'OFFER') {
      if (at >= 0) room.queue.splice(at, 1);
      if (key === me()) out(action);
    } else if (at >= 0) {
      room.queue[at].value = value;
    } else {
      room.queue.push({ key, value });
    }
  },
  turn(frame) { setTurn(frame); },
  command({ from, content }) {
    if (from !== 'host' || !content) return;
    if (content.command === 4) {
      room.outcome = content.data === 'true' ? { key: 'won', isGood: true } : { key: 'lost' };
    } else if (content.command === 5 && content.code === 0) {
      const isAnswer = content.data?.command === 12 || content.data?.command === 13;
      say(word(isAnswer ? 'tooLate' : 'denied'), true);
    }
    // The invitation, 11, comes with a `turn` that has its deadline.
  },
  message(frame) {
    // Sent when the owner opens or closes the machine. From any other sender it would be forged.
    if (frame.object === 'machine' && frame.from === 'host') Object.assign(room.state, frame.content);
    else chat(frame);
  },
  closed() {},
  ack({ ref }) { settle(ref, (asked) => asked.resolve()); },
  error({ ref, code, message }) { settle(ref, (asked) => asked.reject(new Refusal(code, message))); },
};

function settle(ref, how) {
  const asked = room.asked.get(ref);
  room.asked.delete(ref);
  if (asked) how(asked);
}

function hear(frame) {
  const handler = Object.hasOwn(frames, frame.type) && frames[frame.type];
  if (!handler) return;
  handler(frame);
  render();
}

function chat({ from, object, content }) {
  if (typeof content !== 'string' || (object !== chatObject && object !== 'chat')) return;
  addLine($('lines'), from === 'host' ? word('machineName') : nameOf(from), content.slice(0, 500));
}

/** We have left the queue. If a game is running, its result gives the reason. */
function out(action) {
  const isInvited = room.turn.phase === 'offered' && room.turn.player === me();
  if (room.isDeclining) room.outcome = { key: 'declined' };
  else if (room.isLeaving) room.outcome = { key: 'left' };
  else if (action === 'DROP') room.outcome = { key: 'removed' };
  else if (isInvited) room.outcome = { key: 'missed' };
  room.isDeclining = room.isLeaving = false;
}

function setTurn(turn) {
  const wasMine = room.turn.player === me() && room.turn.phase === 'playing';
  room.turn = turn;
  stopClock();
  $('clock').hidden = !turn.deadline || turn.phase === 'offered';
  if (!turn.deadline) return closeInvite();
  const ends = performance.now() + Date.parse(turn.deadline) - Date.now() - clockMs;
  stopClock = countDown($('clock'), ends);
  const isMine = turn.player === me();
  if (isMine && turn.phase === 'offered' && turn.uuid !== room.answered) openInvite(ends);
  else closeInvite();
  if (isMine && turn.phase === 'playing' && !wasMine) {
    room.outcome = null;
    render();
    $('pad').focus({ preventScroll: true });
    $('game').scrollIntoView({ block: 'nearest' });
  }
}

// MARK: The invitation

function openInvite(ends) {
  stopInvite();
  stopInvite = countDown($('inviteClock'), ends);
  if (!$('invite').open) $('invite').showModal();
}

function closeInvite() {
  stopInvite();
  if ($('invite').open) $('invite').close();
}

function answer(isAccepted) {
  const { uuid } = room.turn;
  room.answered = uuid;
  room.isDeclining = !isAccepted;
  closeInvite();
  ask({ type: 'command', content: { command: isAccepted ? 12 : 13, data: uuid } }).catch(complain);
}

$('accept').addEventListener('click', () => answer(true));
$('decline').addEventListener('click', () => answer(false));
// The Escape key.
$('invite').addEventListener('cancel', (event) => { event.preventDefault(); answer(false); });

// MARK: Showing the room

function situation() {
  const { state, turn, queue } = room;
  if (room.over) return { text: room.over.text, isBad: true };
  if (!state || !room.socket) return { text: word(state ? 'cut' : 'connecting'), isBad: Boolean(state) || room.fails > 0 };
  const isMine = turn.player === me();
  if (turn.phase === 'offered') return { text: isMine ? word('yours') : word('invited', { name: nameInQueue(turn.player) }) };
  if (turn.phase === 'playing') return { text: isMine ? word('playing') : word('watching', { name: nameInQueue(turn.player) }) };
  if (turn.phase === 'settling') return { text: isMine ? word('settling') : word('watchingDrop', { name: nameInQueue(turn.player) }) };
  const device = room.members.get('host');
  if (!state.isOpen) return { text: word('closed'), isBad: true };
  if (!device || device.isAway) return { text: word('noDevice'), isBad: true };
  if (state.isPaused) return { text: word('paused'), isBad: true };
  const place = queue.findIndex((entry) => entry.key === me());
  if (place === 0) return { text: word('next') };
  return { text: place > 0 ? word('ahead', { count: place }) : word('free') };
}

function nameInQueue(id) {
  const entry = room.queue.find(({ key }) => key === id);
  try {
    const { nick } = JSON.parse(entry.value);
    if (typeof nick === 'string' && nick) return nick.slice(0, 64);
  } catch { /* Another client's value. */ }
  return nameOf(id);
}

function render() {
  if (!room) return;
  const { turn, queue, state } = room;
  const isUp = isOpen();
  const { text, isBad } = situation();
  if ($('turn').textContent !== text) $('turn').textContent = text;
  $('turn').classList.toggle('bad', Boolean(isBad));
  if (state && !room.socket && !room.over) say(word('cut'), true);
  else if (room.over) say(room.over.text, true);

  const isMine = turn.player === me() && turn.phase !== 'idle';
  const place = queue.findIndex((entry) => entry.key === me());
  const isPlaying = isMine && turn.phase === 'playing' && isUp;
  $('pad').hidden = $('keys').hidden = !isPlaying;
  $('queue').hidden = place >= 0 || isMine || Boolean(room.over);
  $('queue').disabled = !isUp || state.isPaused;
  $('unqueue').hidden = place < 0 || isMine || Boolean(room.over);
  $('unqueue').disabled = !isUp;
  $('here').hidden = room.over?.key !== 'replaced';
  $('places').hidden = isMine;
  if (!isUp) $('clock').hidden = true;
  if (!isPlaying) held.clear();

  const { outcome } = room;
  $('result').hidden = !outcome;
  if (outcome && $('result').textContent !== word(outcome.key)) $('result').textContent = word(outcome.key);
  if (!outcome) $('result').textContent = '';
  $('result').classList.toggle('won', Boolean(outcome?.isGood));

  const people = [...room.members.values()].filter((member) => member.role !== 'host' && !member.isAway).length;
  $('place').textContent = [word('people', { count: people }),
    place >= 0 ? word('place', { place: place + 1, count: queue.length }) : queue.length ? '' : word('nobody')].filter(Boolean).join(' · ');
  $('entries').replaceChildren(...queue.map(({ key }) => {
    const notes = [key === me() && word('you'), key === turn.player && turn.phase !== 'idle' && word(turn.phase === 'offered' ? 'called' : 'plays')].filter(Boolean);
    return make('li', { class: key === me() ? 'self' : '' }, nameInQueue(key) + (notes.length ? ` (${notes.join(', ')})` : ''));
  }));
  $('camera').textContent = word('other', { number: 3 - room.camera });
  document.title = isMine && turn.phase === 'offered' ? `● ${word('inviteTitle')}` : room.machine.name;
}

// MARK: The picture

const hasPicture = (machine) => machine.liveStatus === 1 || machine.liveStatus === 3;

function sayOfPicture(key) {
  const text = key ? word(key) : '';
  if ($('picture').textContent !== text) $('picture').textContent = text;
}

/** Waits until the list shows that there is a picture, then plays it. Without a device, the server would keep the player's WebSocket open and silent
    for a while and then close it, again and again. */
async function showPicture() {
  const here = room;
  const { camera, machine } = here;
  stopPicture(here);
  const mine = here.pictures;
  const isCurrent = () => here === room && here.pictures === mine;
  $('video').setAttribute('aria-label', `${word('picture')}, ${word('camera', { number: camera })}`);
  while (!hasPicture(machine)) {
    sayOfPicture('noPicture');
    await new Promise((resolve) => setTimeout(resolve, listEveryMs));
    if (!isCurrent()) return;
    // A failed request does not mean that there is no picture.
    try { machine.liveStatus = (await find(String(machine.roomId), false))?.liveStatus ?? 0; } catch { break; }
    if (!isCurrent()) return;
  }
  const pull = new URL(machine[`httpPullUrl${camera}`], location.href);
  // At this page's own address, which may be a proxy's, because the page may connect nowhere else.
  const url = socketAddress(pull.pathname.replace(/\.flv$/, '.mp4'), pull.searchParams);
  here.player = new LivePlayer($('video'), url, (text) => {
    if (!isCurrent()) return;
    clearTimeout(here.pictureTimer);
    if (text === 'Connecting…') {
      sayOfPicture('pictureComes');
      here.pictureTimer = setTimeout(() => { if (isCurrent()) sayOfPicture('noPicture'); }, 4000);
    } else {
      sayOfPicture(text && (text === 'Click to play.' ? 'clickToPlay' : /cannot play|no MediaSource/.test(text) ? 'cannotPlay' : 'noPicture'));
    }
  });
  here.player.start();
}

function stopPicture(here) {
  here.pictures += 1;
  clearTimeout(here.pictureTimer);
  here.player?.stop();
  here.player = null;
}

$('camera').addEventListener('click', () => {
  room.camera = 3 - room.camera;
  // The machine may adapt its controls to the player's view.
  if (room.turn.phase === 'playing' && room.turn.player === me()) command(3, room.camera);
  showPicture();
  render();
});
$('video').addEventListener('click', () => { if ($('video').paused) $('video').play().catch(() => {}); });

// MARK: Playing

const held = new Set();
const isPlayingNow = () => isOpen() && room.turn.phase === 'playing' && room.turn.player === me();

function command(number, data) {
  ask({ type: 'command', content: data === undefined ? { command: number } : { command: number, data } }).catch(complain);
}

function press(move) {
  if (!isPlayingNow() || held.has(move)) return;
  held.add(move);
  command(1, move);
  mark();
}

/** Releases one direction, or all. The claw stops with the last one; otherwise it follows a direction that is still held. */
function release(move) {
  if (move ? !held.delete(move) : held.size === 0) return;
  if (!move) held.clear();
  if (isPlayingNow()) command(1, [...held].pop() || 'stop');
  mark();
}

function mark() {
  for (const button of $('pad').querySelectorAll('[data-move]')) button.classList.toggle('held', held.has(button.dataset.move));
}

function dropClaw() {
  if (!isPlayingNow()) return;
  held.clear();
  mark();
  command(2);
}

for (const button of $('pad').querySelectorAll('[data-move]')) {
  const { move } = button.dataset;
  // A mouse press does not move the focus, so that the space bar drops the claw instead of pressing this button.
  button.addEventListener('mousedown', (event) => event.preventDefault());
  button.addEventListener('pointerdown', (event) => {
    button.setPointerCapture?.(event.pointerId);
    press(move);
  });
  for (const kind of ['pointerup', 'pointercancel', 'lostpointercapture']) button.addEventListener(kind, () => release(move));
  button.addEventListener('contextmenu', (event) => event.preventDefault());
  // By keyboard or screen reader: a short move.
  button.addEventListener('click', (event) => {
    if (event.detail !== 0) return;
    press(move);
    setTimeout(() => release(move), 300);
  });
}
$('drop').addEventListener('mousedown', (event) => event.preventDefault());
$('drop').addEventListener('click', dropClaw);

const arrows = { ArrowUp: 'up', ArrowDown: 'down', ArrowLeft: 'left', ArrowRight: 'right' };
document.addEventListener('keydown', (event) => {
  if (!room || !isPlayingNow() || event.ctrlKey || event.altKey || event.metaKey || event.target.matches('input')) return;
  if (arrows[event.key]) {
    event.preventDefault();
    press(arrows[event.key]);
  } else if (event.key === ' ' && !event.target.matches('button')) {
    event.preventDefault();
    if (!event.repeat) dropClaw();
  }
});
document.addEventListener('keyup', (event) => { if (room && arrows[event.key]) release(arrows[event.key]); });
// A page without focus gets no key releases.
window.addEventListener('blur', () => { if (room) release(); });
document.addEventListener('visibilitychange', () => { if (room && document.hidden) release(); });

// MARK: Queue and chat

$('queue').addEventListener('click', () => {
  room.outcome = null;
  say(word('connected', { name: account.nickname }));
  ask({ type: 'queue.offer', value: JSON.stringify({ nick: account.nickname, webrtc: 0, h5: 1 }) }).catch(complain);
});
$('unqueue').addEventListener('click', () => {
  room.isLeaving = true;
  ask({ type: 'queue.poll' }).catch((error) => { room.isLeaving = false; complain(error); });
});
$('here').addEventListener('click', () => {
  room.over = null;
  room.state = null;
  open();
  render();
});
$('chat').addEventListener('submit', (event) => {
  event.preventDefault();
  const text = $('line').value.trim();
  if (!text) return;
  ask({ type: 'send', object: chatObject, content: text }).then(() => {
    addLine($('lines'), account.nickname, text);
    $('line').value = '';
  }, complain);
});
window.addEventListener('online', () => { if (room && !room.socket && !room.over) reopen(room); });

// MARK: Views

async function showRoom(id) {
  const here = view;
  say(word('connecting'));
  let machine;
  try {
    machine = await find(id);
  } catch (error) {
    if (here !== view) return;
    say(error.code === 0 ? word('unreachable') : error.message, true);
    if (error.code === 0 || error.code === 407) setTimeout(() => { if (here === view) showRoom(id); }, 3000);
    return;
  }
  if (here !== view) return;
  if (!machine) return say(word('unlisted'), true);
  room = newRoom(machine);
  $('title').textContent = machine.name;
  $('lines').replaceChildren();
  $('room').hidden = false;
  sayOfPicture('pictureComes');
  render();
  open();
}

function leaveRoom() {
  const here = room;
  // Sent at once, so that nobody waits for a player who has left.
  if (here && isOpen() && here.queue.some((entry) => entry.key === me())) here.socket.send('{"type":"queue.poll"}');
  room = null;
  clearTimeout(here?.timer);
  clearInterval(here?.ping);
  stopClock();
  closeInvite();
  if (here) stopPicture(here);
  here?.socket?.close(1000);
}

function go() {
  leaveRoom();
  view += 1;
  const id = location.hash.slice(1);
  $('room').hidden = true;
  $('back').hidden = !id;
  $('list').hidden = Boolean(id);
  $('host').hidden = Boolean(id) || !isHost;
  $('title').textContent = document.title = word('title');
  if (id) return showRoom(id);
  say(word('getting'));
  return showList();
}

$('back').addEventListener('click', () => { location.hash = ''; });
$('more').addEventListener('click', () => { shown += listPage; showList(); });
window.addEventListener('hashchange', go);

// MARK: Making a machine

const isHost = new URLSearchParams(location.search).get('host') === '1';

function camera(url, source) {
  return `ffmpeg -re -f lavfi -i ${source}=size=640x480:rate=25 -c:v libx264 -preset ultrafast -tune zerolatency -pix_fmt yuv420p -g 25 -f flv '${url}'`;
}

$('make').addEventListener('submit', async (event) => {
  event.preventDefault();
  const name = $('hostName').value.trim();
  if (!name) return;
  const tell = (text, isBad) => {
    $('hostSays').textContent = text;
    $('hostSays').className = isBad ? 'bad' : '';
  };
  tell(word('making'));
  $('made').hidden = true;
  try {
    const accid = `claw${crypto.getRandomValues(new Uint32Array(2)).reduce((text, number) => text + number.toString(36), '')}`.slice(0, 20);
    const number = await call('host/create', { accid, nickname: 'claw', name });
    await call('host/manage', { roomId: number, bePublic: true, roomStatus: true });
    const found = await call('host/query', { roomId: number });
    // Both test pictures show a running time.
    $('camera1').textContent = camera(found.pushUrl1, 'testsrc2');
    $('camera2').textContent = camera(found.pushUrl2, 'testsrc');
    $('script').textContent = `python3 docs/apps/machine.py --http ${location.origin} --room ${number}`;
    $('visit').href = `#${number}`;
    $('made').hidden = false;
    tell(word('madeIt', { number }));
    showList();
  } catch (error) {
    tell(error.code === 403 ? word('host403') : error.message, true);
  }
});
for (const button of document.querySelectorAll('[data-copy]')) {
  // The clipboard needs HTTPS or localhost; elsewhere the text can be selected.
  button.hidden = !navigator.clipboard;
  button.addEventListener('click', async () => {
    try { await navigator.clipboard.writeText($(button.dataset.copy).textContent); } catch { return; }
    button.textContent = word('copied');
    setTimeout(() => { button.textContent = word('copy'); }, 2000);
  });
}

go();
