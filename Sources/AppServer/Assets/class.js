// The class's page: joins by the class's REST API, follows the class over its channel, and connects cameras by the mesh (both in rong.js).
import { $, addLine, language, make, say, socketAddress, speak } from '/demo/demo.js';

const word = speak({
  title: ['Class', '课堂'], name: ['Your name', '你的名字'], room: ['Class', '课堂'], as: ['Join as', '加入身份'],
  asLearner: ['Learner', '学员'], asLearnerHint: ['seen and heard by all', '所有人可以看到和听到你'],
  asAudience: ['Audience', '旁听'], asAudienceHint: ['watches, may raise a hand', '只观看，可以举手'],
  withCamera: ['Camera on', '打开摄像头'], join: ['Join', '加入'], leave: ['Leave', '离开'],
  stage: ['What all see', '共享区'], people: ['People', '成员'], controls: ['Your devices', '你的设备'], hands: ['Raised hands', '举手'],
  shown: ['Shown to all', '展示给所有人'], chat: ['Chat', '聊天'], message: ['Message', '消息'], send: ['Send', '发送'],
  pageBack: ['Page back', '上一页'], pageOn: ['Page on', '下一页'], page: ['Page {n}', '第 {n} 页'],
  live: ['Live streams of this class', '课堂直播流'],
  liveHint: ['What programs such as OBS push to this class.', 'OBS 等软件推到本课堂的直播。'],
  liveTeacher: ['Teacher', '讲师'], liveAssistant: ['Assistant', '助教'], liveScreen: ['Screen', '屏幕'],
  liveWait: ['Waiting for this stream…', '正在等待直播流…'], liveVideo: ['Live picture', '直播画面'],
  role1: ['Assistant', '助教'], role2: ['Teacher', '讲师'], role3: ['Student', '学员'], role4: ['Audience', '旁听人'],
  you: ['{name} (you)', '{name}（你）'], aboutMe: ['{name} · {role} · {room}', '{name} · {role} · {room}'],
  microphoneOff: ['microphone off', '麦克风已关'], cameraOff: ['camera off', '摄像头已关'], bothOff: ['microphone and camera off', '麦克风和摄像头已关'],
  mute: ['Mute microphone', '关闭麦克风'], unmute: ['Unmute microphone', '打开麦克风'],
  hide: ['Turn camera off', '关闭摄像头'], unhide: ['Turn camera on', '打开摄像头'],
  share: ['Share screen', '共享屏幕'], unshare: ['Stop sharing', '停止共享'],
  raise: ['Raise hand', '举手'], raised: ['Hand is raised…', '已举手…'],
  crowd: ['{n} in the audience', '{n} 位旁听人'],
  boardN: ['Whiteboard {n}', '白板{n}'], newBoard: ['New whiteboard', '新建白板'], deleteBoard: ['Delete whiteboard', '删除白板'],
  openBoard: ['Open the whiteboard', '打开白板'], nothing: ['Nothing', '不展示'],
  shownNothing: ['Nothing is shown to all at the moment.', '当前没有展示内容。'],
  shownOff: ['{name} is shown. The camera is off.', '正在展示 {name}，摄像头已关闭。'],
  shownWait: ['{name} is shown. Waiting for the picture…', '正在展示 {name}，等待画面…'],
  shownNone: ['{name} is shown. No picture has arrived; perhaps too many watch.', '正在展示 {name}，没有收到画面，可能观看人数过多。'],
  shownMine: ['Your screen is shown to all.', '正在向所有人展示你的屏幕。'],
  shownPerson: ['{role}: {name}', '{role}：{name}'], shownScreen: ['Screen of {name}', '{name} 的屏幕'],
  invite: ['Invite to speak', '邀请发言'], makeTeacher: ['Make teacher', '设为讲师'], handOver: ['Hand the class over', '转让助教'],
  askMicrophone: ['Ask: microphone on', '请求打开麦克风'], askCamera: ['Ask: camera on', '请求打开摄像头'],
  downgrade: ['Move to audience', '降为旁听人'], kick: ['Remove', '移出课堂'], approve: ['Let speak', '同意'], reject: ['Not now', '拒绝'],
  sureDelete: ['Delete {name} with all that is drawn on it?', '要删除{name}及其全部内容吗？'],
  sureKick: ['Remove {name} from the class?', '要把 {name} 移出课堂吗？'],
  sureHandOver: ['Make {name} the assistant? You become a student.', '要把助教转让给 {name} 吗？你将成为学员。'],
  yes: ['Yes', '是'], no: ['No', '否'], accept: ['Accept', '接受'],
  wantsToSpeak: ['{name} wants to speak.', '{name} 申请发言。'],
  askedRole: ['{name} invites you to speak as {role}.', '{name} 邀请你成为{role}。'],
  askedMicrophone: ['{name} asks you to switch your microphone on.', '{name} 请你打开麦克风。'],
  askedCamera: ['{name} asks you to switch your camera on.', '{name} 请你打开摄像头。'],
  joining: ['Joining…', '正在加入…'], connecting: ['Connecting…', '正在连接…'],
  asking: ['Your browser asks for camera and microphone.', '浏览器正在请求摄像头和麦克风。'],
  refused: ['The browser refused the camera or microphone. The class goes on without them; allow them beside the address, then switch them on below.',
    '浏览器拒绝了摄像头或麦克风。课堂可以继续；请在地址栏旁允许后，再在下方打开。'],
  missing: ['No camera or microphone was found. The class goes on without.', '没有找到摄像头或麦克风，课堂可以继续。'],
  missingCamera: ['No camera was found. The class goes on with the microphone.', '没有找到摄像头，课堂以麦克风继续。'],
  busy: ['The camera or microphone is in use by another program. The class goes on without.', '摄像头或麦克风正被其他程序使用，课堂可以继续。'],
  insecure: ['Browsers give cameras only to pages over HTTPS or on this machine. The class goes on without.',
    '浏览器只允许 HTTPS 页面或本机页面使用摄像头，课堂可以继续。'],
  cameras: ['Eight cameras are on already, as many as browsers can exchange. Yours stays off.', '已有八个摄像头打开，达到上限，你的摄像头保持关闭。'],
  crowded: ['{name} already sends to as many as possible. Try the live streams below.', '{name} 的画面观看人数已满，可以试试下方的直播流。'],
  alone: ['You are alone in this class.', '课堂里只有你一人。'],
  inClass: ['You are in the class.', '你已进入课堂。'],
  audience: ['You are audience: nobody sees or hears you. Raise a hand to speak.', '你是旁听人，别人看/听不见你。可以举手发言。'],
  lost: ['The connection to the server was lost. Trying again…', '与服务器的连接已断开，正在重试…'],
  left: ['You have left the class.', '你已离开课堂。'],
  kicked: ['The assistant has removed you from the class.', '你已被助教移出课堂。'],
  replaced: ['You have joined from another window. This one has ended.', '你已在其他窗口加入，此窗口已结束。'],
  ended: ['The class has ended.', '课堂已结束。'],
  gone: ['You are no longer in the class: you were away for too long, or were removed. Join again.', '你已不在课堂中：离开太久或已被移出。请重新加入。'],
  token: ['Your place in this class is no longer valid. Join again.', '你的课堂凭证已失效，请重新加入。'],
  mutedBy: ['{name} has switched your microphone off.', '{name} 关闭了你的麦克风。'],
  hiddenBy: ['{name} has switched your camera off.', '{name} 关闭了你的摄像头。'],
  nowSpeaker: ['You are a student now: others see and hear you.', '你现在是学员，别人可以看到和听到你。'],
  nowTeacher: ['You are the teacher now.', '你现在是讲师。'], nowAssistant: ['You are the assistant now.', '你现在是助教。'],
  nowStudent: ['You are a student now.', '你现在是学员。'],
  nowAudience: ['You have been moved to the audience: nobody sees or hears you.', '你已被降为旁听人，别人看/听不见你。'],
  handUp: ['Your hand is raised. The assistant has been asked.', '你已举手，正在等待助教。'],
  handRejected: ['The assistant cannot let you speak now. You may raise your hand again.', '助教暂时没有同意发言，你可以再次举手。'],
  handExpired: ['Nobody answered your raised hand. You may raise it again.', '没有人回应你的举手，你可以再次举手。'],
  askExpired: ['An invitation to you has expired.', '一个给你的邀请已过期。'],
  asked: ['{name} has been asked.', '已询问 {name}。'], answeredNo: ['{name} said no.', '{name} 拒绝了。'], answeredYes: ['{name} said yes.', '{name} 同意了。'],
  answeredNot: ['{name} did not answer in time.', '{name} 没有及时回应。'],
  hasJoined: ['{name} has joined.', '{name} 加入了课堂。'], hasLeft: ['{name} has left.', '{name} 离开了课堂。'], wasKicked: ['{name} was removed.', '{name} 被移出了课堂。'],
  roleIs: ['{name} is now: {role}', '{name} 现在是{role}'], notSent: ['The message was not sent. Try again.', '消息没有发送，请重试。'],
  picture: ['(a picture or file)', '（图片或文件）'],
  // The server's refusals, by code.
  code1: ['That is not possible: {detail}', '无法执行：{detail}'], code2: ['You are no longer in this class. Join again.', '你已不在课堂中，请重新加入。'],
  code3: ['Your role does not allow this.', '你的身份不能执行此操作。'], code10: ['The messaging service lets nobody in at the moment. Try again later.', '消息服务暂时无法使用，请稍后再试。'],
  code11: ['The class could not be opened. Try again later.', '无法创建课堂，请稍后再试。'],
  code12: ['The class could not be joined. Try again.', '无法加入课堂，请重试。'], code13: ['It is done, but people with other apps may not have been told.', '已完成，但使用其他客户端的人可能没有收到通知。'],
  code20: ['This class has ended.', '课堂已结束。'],
  code21: ['That person has left.', '该成员已离开。'], code22: ['It is done, but other apps may still show that person.', '已完成，但其他客户端可能仍会显示该成员。'],
  code23: ['There is no teacher in the class.', '课堂里没有讲师。'],
  code24: ['There is no assistant in the class who could answer.', '课堂里没有助教。'], code25: ['No more whiteboards can be made.', '无法创建更多白板。'],
  code26: ['This whiteboard has been deleted.', '白板已被删除。'], code27: ['The whiteboard could not be deleted.', '无法删除白板。'],
  code29: ['That is not possible for yourself.', '不能对自己执行此操作。'], code30: ['This request has expired or was answered already.', '该请求已过期或已处理。'],
  code31: ['The class is full: sixteen learners are in it. You can join as audience, or somebody has to leave.', '课堂学员人数已满（16 人）。可以旁听身份加入，或等待有人离开。'],
  code33: ['An invitation cannot lower a role.', '邀请不能降低身份。'], code34: ['Only a student can become the teacher.', '只有学员可以设为讲师。'],
  code255: ['The server could not do this. Try again.', '服务器无法执行，请重试。'], offline: ['The server cannot be reached. Try again.', '无法连接服务器，请重试。'],
});

// The stream names of native apps with the same protocol.
const CAMERA = 'RongCloudRTC';
const SCREEN = 'screenshare';
const [ASSISTANT, TEACHER, STUDENT, AUDIENCE] = [1, 2, 3, 4];
const [SHOW_ASSISTANT, SHOW_TEACHER, SHOW_BOARD, SHOW_SCREEN, SHOW_NOTHING] = [0, 1, 2, 3, 4];
const mostCameras = 8;
const { Channel, Mesh } = window.Earshot;

/** The state while this page is in a class; null outside. */
let room = null;

const roleWord = (role) => word(`role${role}`);
const person = (id) => room.channel.people.get(id);
const me = () => person(room.id) || { userId: room.id, userName: room.name, role: AUDIENCE };
const nameOf = (id, known) => person(id)?.userName || known || '?';
const hasSeat = (each) => each.role !== AUDIENCE;
const isLeading = () => me().role === ASSISTANT || me().role === TEACHER;
const bounded = (text, most) => String(text ?? '').slice(0, most);

// MARK: Calls

async function call(path, body, authorization = room?.authorization) {
  const isRead = body === null;
  let answer;
  try {
    const address = `/classroom/api/v1/room/${path}`;
    const headers = authorization ? { Authorization: authorization } : {};
    const reply = isRead
      ? await fetch(`${address}?roomId=${encodeURIComponent(room.roomID)}`, { headers })
      : await fetch(address, {
        method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify({ roomId: room?.roomID, ...body }),
      });
    answer = await reply.json();
  } catch {
    throw Object.assign(new Error('offline'), { text: word('offline') });
  }
  if (answer.errCode === 0) return answer.data.result;
  const key = `code${answer.errCode}`;
  const known = word(key, { detail: answer.errDetail || answer.errMsg });
  throw Object.assign(new Error(answer.errMsg), { code: answer.errCode, text: known === key ? word('code255') : known });
}

/** A call for a button; an error is shown in the status line. Returns the server's code: 0 for success. */
async function act(path, body, done) {
  const here = room;
  try {
    const result = await call(path, body);
    if (room !== here) return 0;
    if (done) done(result);
    render();
    return 0;
  } catch (error) {
    if (room === here) say(error.text ?? word('code255'), true);
    return error.code ?? -1;
  }
}

// MARK: Joining

const address = new URLSearchParams(location.search);
const kept = JSON.parse(sessionStorage.getItem('class') || '{}');
$('room').value = address.get('room') || kept.room || '';
$('name').value = address.get('name') || kept.name || '';
if (address.get('as') === 'audience') $('asAudience').checked = true;
if (address.get('camera') === 'off') $('withCamera').checked = false;

const showCameraChoice = () => { $('withCameraLabel').hidden = $('asAudience').checked; };
for (const choice of document.getElementsByName('as')) choice.addEventListener('change', showCameraChoice);
showCameraChoice();

$('join').addEventListener('submit', async (event) => {
  event.preventDefault();
  const [roomID, name, isAudience] = [$('room').value.trim(), $('name').value.trim(), $('asAudience').checked];
  if (!name || !roomID) return;
  const wantsCamera = $('withCamera').checked;
  // A member that reloads the page keeps its place.
  const isSame = kept.room === roomID && kept.name === name;
  $('enter').disabled = true;
  say(word('joining'));
  try {
    const joined = await call('join', { roomId: roomID, userName: name, audience: isAudience, disableCamera: !wantsCamera }, isSame ? kept.authorization : '');
    Object.assign(kept, { room: roomID, name, authorization: joined.authorization });
    sessionStorage.setItem('class', JSON.stringify(kept));
    enter(joined, roomID, name);
  } catch (error) {
    say(error.text, true);
    if (error.code === 31) $('asAudience').focus();
  } finally {
    $('enter').disabled = false;
  }
});

function enter(joined, roomID, name) {
  const channel = new Channel(joined.imToken);
  room = {
    channel, mesh: new Mesh(channel), id: joined.userInfo.userId, roomID, name, authorization: joined.authorization,
    display: null, boards: new Map(), hands: new Map(), isHandUp: false, streams: new Map(), media: new MediaStream(), screen: null, seen: new Set(),
    silent: new Set(), isFirst: true, role: joined.userInfo.role, getting: {},
  };
  $('lines').replaceChildren();
  channel.on('hello', greeted);
  channel.on('message', heard);
  channel.on('lost', () => say(word('lost'), true));
  channel.on('ended', (reason) => { if (reason !== 'closed') finish(reason, reason !== 'ended'); });
  room.mesh.on('stream', (id, tag, stream, state) => {
    const key = `${id} ${tag}`;
    if (stream) room.streams.set(key, { stream, state });
    else room.streams.delete(key);
    render();
  });
  room.mesh.on('changed', (id, tag, state) => {
    const known = room.streams.get(`${id} ${tag}`);
    if (known) known.state = state;
    render();
  });
  room.mesh.on('joined', (id) => room.silent.delete(id));
  room.mesh.on('unanswered', (id) => {
    room.silent.add(id);
    render();
  });
  room.mesh.on('full', (id) => say(word('crowded', { name: nameOf(id) }), true));
  room.mesh.start();
  say(word('connecting'));
  channel.open();
}

/** Leaves the class and shows the reason. */
function finish(key, isBad = false) {
  const here = room;
  if (!here) return;
  here.mesh.stop();
  here.channel.close();
  room = null;
  for (const stream of [here.media, here.screen]) for (const track of stream ? stream.getTracks() : []) track.stop();
  stopLive();
  questions.length = 0;
  if ($('ask').open) $('ask').close();
  if (key !== 'lost') {
    delete kept.authorization;
    sessionStorage.setItem('class', JSON.stringify(kept));
  }
  $('people').replaceChildren();
  $('members').replaceChildren();
  $('hands').replaceChildren();
  $('stageVideo').srcObject = null;
  $('stageBoard').removeAttribute('src');
  $('class').hidden = true;
  $('me').hidden = true;
  $('join').hidden = false;
  document.body.classList.remove('inClass');
  say(word(key), isBad);
}

$('leave').addEventListener('click', () => {
  // The page leaves without waiting for the answer.
  call('leave', {}).catch(() => {});
  finish('left');
});

// MARK: Messages of the channel

function readDisplay(text) {
  const parts = /^display:\/\/type=(\d)\?userId=([^?]*)\?uri=([\s\S]*)$/.exec(text || '');
  return parts ? { kind: Number(parts[1]), userId: parts[2], uri: parts[3] } : null;
}

/** Takes the class's state, at the start and after each lost connection. */
function greeted(frame) {
  const { class: state, tickets, messages } = frame.state;
  room.display = readDisplay(state.display);
  room.boards = new Map(state.whiteboards.map((board) => [board.whiteboardId, { name: board.name, page: board.curPg }]));
  room.hands.clear();
  room.isHandUp = false;
  // Withdraws questions that have expired in the meantime.
  for (const { key, isTicket } of [...questions]) if (isTicket && !tickets.some((ticket) => ticket.ticketId === key)) unask(key);
  for (const { ticketId, kind, from, to, payload } of tickets) {
    if (to === room.id && kind === 'speech') room.hands.set(ticketId, { id: from, name: nameOf(from) });
    else if (to === room.id) askMe(ticketId, kind === 'invite' ? { role: payload.role } : { device: kind }, nameOf(from));
    else if (from === room.id && kind === 'speech') room.isHandUp = true;
  }
  // Own messages are shown already, unless the page was reloaded.
  for (const message of messages) if (room.isFirst || message.from !== room.id) chatted(message);
  $('join').hidden = true;
  $('class').hidden = false;
  document.body.classList.add('inClass');
  if (!room.channel.people.has(room.id)) return finish('gone', true);
  const former = room.role;
  room.role = me().role;
  say(word(room.role === AUDIENCE ? 'audience' : room.channel.people.size === 1 ? 'alone' : 'inClass'));
  if (room.isFirst || former !== room.role) roleChanged(room.isFirst ? AUDIENCE : former, true);
  else applyDevices();
  room.isFirst = false;
  render();
  return undefined;
}

function chatted({ from, object, content, at }) {
  const key = `${at} ${from}`;
  if (object.startsWith('SC:') || object === 'rtc' || room.seen.has(key)) return;
  room.seen.add(key);
  const text = object === 'RC:TxtMsg' ? bounded(content?.content, 2000) : word('picture');
  addLine($('lines'), bounded(nameOf(from, content?.user?.name), 64), text);
}

const note = (key, values) => addLine($('lines'), '', word(key, values), true);

const messages = {
  'SC:RMCMsg'({ action, userId, userName }) {
    if (action === 3 && userId === room.id) return finish('kicked', true);
    note({ 1: 'hasJoined', 2: 'hasLeft', 3: 'wasKicked' }[action], { name: userName });
    for (const [ticket, hand] of room.hands) if (hand.id === userId && action !== 1) room.hands.delete(ticket);
    return undefined;
  },
  'SC:RCMsg'({ users }) {
    for (const user of users) if (user.userId !== room.id) note('roleIs', { name: user.userName, role: roleWord(user.role) });
    roleMayHaveChanged();
  },
  'SC:ATMsg'({ toUserId }) {
    if (toUserId !== room.id) note('roleIs', { name: nameOf(toUserId), role: roleWord(ASSISTANT) });
    if (me().role !== ASSISTANT) room.hands.clear();
    roleMayHaveChanged();
  },
  'SC:DisplayMsg'({ display }) { room.display = readDisplay(display); },
  'SC:WBMsg'({ action, whiteboardId, whiteboardName }) {
    if (action === 1) room.boards.set(whiteboardId, { name: whiteboardName, page: 0 });
    else room.boards.delete(whiteboardId);
  },
  'SC:WBTPMsg'({ whiteboardId, curPg }) {
    const board = room.boards.get(whiteboardId);
    if (board) board.page = curPg;
  },
  'SC:DRMsg'({ type, enable, userId }, from) {
    if (userId !== room.id) return;
    const key = type === 0 ? 'mutedBy' : 'hiddenBy';
    if (!enable && from !== room.id) {
      room.switchedOff = word(key, { name: nameOf(from) });
      say(room.switchedOff, true);
    } else if (enable && $('status').textContent === room.switchedOff) {
      say(word('inClass'));
    }
    applyDevices();
  },
  'SC:RSMsg'({ reqUserId, reqUserName, ticket }) { room.hands.set(ticket, { id: reqUserId, name: reqUserName }); },
  'SC:SRMsg'({ action }) {
    room.isHandUp = false;
    if (action === 2) say(word('handRejected'), true);
  },
  'SC:IURMsg'({ action, ticket, role, opUserId, opUserName }) {
    if (action === 1) askMe(ticket, { role }, opUserName);
    else say(word(action === 3 ? 'answeredYes' : 'answeredNo', { name: nameOf(opUserId, opUserName) }));
  },
  'SC:CDNMsg'({ action, type, ticket, opUserId, opUserName }) {
    if (action === 1) askMe(ticket, { device: type === 0 ? 'microphone' : 'camera' }, opUserName);
    else say(word(action === 3 ? 'answeredYes' : 'answeredNo', { name: nameOf(opUserId, opUserName) }));
  },
  'SC:TEMsg'({ ticket, fromUserId, toUserId }) {
    room.hands.delete(ticket);
    if (unask(ticket)) say(word('askExpired'));
    if (fromUserId !== room.id) return;
    if (me().role === AUDIENCE) {
      room.isHandUp = false;
      say(word('handExpired'), true);
    } else {
      say(word('answeredNot', { name: nameOf(toUserId) }), true);
    }
  },
};

function heard(frame) {
  if (frame.object === 'rtc') return;
  if (messages[frame.object]) messages[frame.object](frame.content, frame.from);
  else chatted(frame);
  render();
}

function roleMayHaveChanged() {
  const former = room.role;
  room.role = me().role;
  if (room.role !== former) roleChanged(former, false);
}

function roleChanged(former, isQuiet) {
  const { role } = me();
  if (!isQuiet) {
    const student = former === AUDIENCE ? 'nowSpeaker' : 'nowStudent';
    say(word({ [ASSISTANT]: 'nowAssistant', [TEACHER]: 'nowTeacher', [STUDENT]: student, [AUDIENCE]: 'nowAudience' }[role]));
  }
  room.isHandUp = false;
  if (role === AUDIENCE) return silence();
  if (former === AUDIENCE) start();
  if (!isLeading() && room.screen) stopScreen();
  return undefined;
}

// MARK: Own camera and microphone

const trackOf = (kind) => room.media.getTracks().find((track) => track.kind === kind && track.readyState === 'live');
const publish = () => room.mesh.publish(CAMERA, room.media, { video: Boolean(trackOf('video')), audio: Boolean(trackOf('audio')?.enabled) });

function reasonOf(error) {
  return { NotAllowedError: 'refused', SecurityError: 'refused', NotFoundError: 'missing', OverconstrainedError: 'missing' }[error.name] || 'busy';
}

const videoWish = { width: { ideal: 320 }, height: { ideal: 240 }, frameRate: { ideal: 15, max: 30 }, facingMode: 'user' };
const audioWish = { echoCancellation: true, noiseSuppression: true };

/** Starts the camera and microphone that the class lists for this member, without those that are unavailable. */
async function start() {
  const here = room;
  const others = [...here.channel.people.values()].filter((each) => each.userId !== here.id && hasSeat(each) && each.camera);
  let wantsVideo = me().camera;
  let problem = '';
  if (wantsVideo && others.length >= mostCameras) {
    wantsVideo = false;
    problem = 'cameras';
  }
  const take = async (wish) => {
    const stream = await navigator.mediaDevices.getUserMedia(wish);
    const tracks = stream.getTracks();
    // The member may have left, or become audience again, while the browser was asking.
    if (room !== here || me().role === AUDIENCE) return tracks.forEach((track) => track.stop());
    return tracks.forEach((track) => here.media.addTrack(track));
  };
  if (!navigator.mediaDevices?.getUserMedia) {
    problem = 'insecure';
  } else {
    const before = $('status').textContent;
    // Shown only if the browser really asks: a permission given before needs no message.
    const asking = setTimeout(() => { if (room === here) say(word('asking')); }, 700);
    here.getting.audio = here.getting.video = true;
    try {
      await take({ audio: audioWish, video: wantsVideo ? videoWish : false });
    } catch (error) {
      problem = reasonOf(error);
      if (wantsVideo && problem !== 'refused') {
        try {
          await take({ audio: audioWish, video: false });
          problem = problem === 'missing' ? 'missingCamera' : problem;
        } catch { /* Neither. The first reason stands. */ }
      }
    }
    clearTimeout(asking);
    if (room !== here) return;
    here.getting.audio = here.getting.video = false;
    if ($('status').textContent === word('asking')) say(before);
  }
  if (room !== here || me().role === AUDIENCE) return;
  if (problem) say(word(problem), true);
  // Corrects the class's list to what is really on. Change the local list first: otherwise applyDevices would ask the browser again.
  const mine = person(room.id);
  const lacking = [['camera', 'video', 'cameraOn'], ['microphone', 'audio', 'microphoneOn']].filter(([device, kind]) => mine[device] && !trackOf(kind));
  for (const [device] of lacking) mine[device] = false;
  applyDevices();
  for (const [, , field] of lacking) act('device/sync', { [field]: false });
}

function sync(device, isOn) {
  const mine = person(room.id);
  if (mine) mine[device] = isOn;
  applyDevices();
  act('device/sync', device === 'camera' ? { cameraOn: isOn } : { microphoneOn: isOn });
}

/** Adjusts the tracks to the class's list, which the assistant may have changed. */
function applyDevices() {
  if (!room || me().role === AUDIENCE) return;
  const { camera, microphone } = me();
  const video = trackOf('video');
  if (!camera && video) {
    // Stopped, not only disabled, so that the camera's light goes off.
    video.stop();
    room.media.removeTrack(video);
  } else if (camera && !video) {
    get('video', 'camera');
  }
  const audio = trackOf('audio');
  if (audio) audio.enabled = microphone;
  else if (microphone) get('audio', 'microphone');
  if (room.media.getTracks().length) publish();
  else room.mesh.unpublish(CAMERA);
  render();
}

/** Adds a device. If it is unavailable, the class's list is corrected. */
async function get(kind, device) {
  const here = room;
  if (here.getting[kind]) return;
  here.getting[kind] = true;
  let problem = '';
  try {
    if (!navigator.mediaDevices?.getUserMedia) throw Object.assign(new Error(), { name: 'insecure' });
    const stream = await navigator.mediaDevices.getUserMedia(kind === 'video' ? { video: videoWish } : { audio: audioWish });
    const isWanted = room === here && me().role !== AUDIENCE && me()[device];
    for (const track of stream.getTracks()) {
      if (isWanted) here.media.addTrack(track);
      else track.stop();
    }
  } catch (error) {
    problem = error.name === 'insecure' ? 'insecure' : reasonOf(error);
  }
  here.getting[kind] = false;
  if (room !== here) return;
  if (problem) {
    say(word(problem), true);
    sync(device, false);
  } else {
    applyDevices();
  }
}

/** Stops sending all media. */
function silence() {
  stopScreen();
  for (const track of room.media.getTracks()) {
    track.stop();
    room.media.removeTrack(track);
  }
  room.mesh.unpublish(CAMERA);
}

$('microphone').addEventListener('click', () => sync('microphone', !me().microphone));

$('camera').addEventListener('click', () => {
  const isOn = me().camera;
  const others = [...room.channel.people.values()].filter((each) => each.userId !== room.id && hasSeat(each) && each.camera);
  if (!isOn && others.length >= mostCameras) say(word('cameras'), true);
  else sync('camera', !isOn);
});

async function startScreen() {
  const here = room;
  let stream;
  try {
    stream = await navigator.mediaDevices.getDisplayMedia({ video: { frameRate: { max: 15 } }, audio: false });
  } catch {
    // The user has cancelled.
    return;
  }
  if (room !== here || !isLeading()) return stream.getTracks().forEach((track) => track.stop());
  room.screen = stream;
  for (const track of stream.getTracks()) track.addEventListener('ended', () => { if (room === here) stopScreen(); });
  room.mesh.publish(SCREEN, stream, { video: true, audio: false });
  show(SHOW_SCREEN, { userId: room.id });
}

function stopScreen() {
  if (!room?.screen) return;
  for (const track of room.screen.getTracks()) track.stop();
  room.screen = null;
  room.mesh.unpublish(SCREEN);
  if (isLeading() && room.display?.kind === SHOW_SCREEN && room.display.userId === room.id) show(SHOW_NOTHING);
  render();
}

$('screen').addEventListener('click', () => (room.screen ? stopScreen() : startScreen()));

// MARK: Questions

// Pending questions, shown one at a time: {key, isTicket, text, yes, no, onYes, onNo}.
const questions = [];

function showQuestion() {
  const question = questions[0];
  if (!question) {
    if ($('ask').open) $('ask').close();
    return;
  }
  $('askText').textContent = question.text;
  $('askYes').textContent = question.yes;
  $('askNo').textContent = question.no;
  if (!$('ask').open) $('ask').showModal();
}

function ask(question) {
  if (questions.some((each) => each.key === question.key)) return;
  questions.push(question);
  showQuestion();
}

/** Withdraws a question. True if it was pending. */
function unask(key) {
  const index = questions.findIndex((each) => each.key === key);
  if (index < 0) return false;
  questions.splice(index, 1);
  showQuestion();
  return true;
}

function answered(isYes) {
  const question = questions.shift();
  showQuestion();
  if (question) (isYes ? question.onYes : question.onNo)?.();
}

$('askYes').addEventListener('click', () => answered(true));
$('askNo').addEventListener('click', () => answered(false));
$('ask').addEventListener('cancel', (event) => {
  event.preventDefault();
  answered(false);
});

function askMe(ticket, { role, device }, name) {
  const path = device ? 'device' : 'upgrade';
  const text = device ? word(device === 'camera' ? 'askedCamera' : 'askedMicrophone', { name }) : word('askedRole', { name, role: roleWord(role) });
  ask({
    key: ticket, isTicket: true, text, yes: word('accept'), no: word('reject'),
    onYes: () => act(`${path}/approve`, { ticket }), onNo: () => act(`${path}/reject`, { ticket }),
  });
}

const sure = (key, name, onYes) => ask({ key: `${key} ${name}`, text: word(key, { name }), yes: word('yes'), no: word('no'), onYes });

$('hand').addEventListener('click', () => act('speech/apply', {}, () => {
  room.isHandUp = true;
  say(word('handUp'));
}));

// MARK: The display

function show(kind, { userId = '', uri = '' } = {}) {
  const body = kind === SHOW_BOARD ? { type: kind, uri } : kind === SHOW_SCREEN ? { type: kind, userId } : { type: kind };
  return act('display', body, () => { room.display = kind === SHOW_NOTHING ? null : { kind, userId, uri }; });
}

async function refreshBoards() {
  const here = room;
  const boards = await call('whiteboard/list', null).catch(() => null);
  if (room !== here || !boards) return;
  room.boards = new Map(boards.map((board) => [board.whiteboardId, { name: board.name, page: board.curPg }]));
  render();
}

const boardName = (name) => {
  const number = /^白板(\d+)$/.exec(name)?.[1];
  return number ? word('boardN', { n: number }) : bounded(name, 64);
};

function turn(step) {
  const { uri } = room.display;
  const board = room.boards.get(uri);
  const page = board.page + step;
  act('whiteboard/turn-page', { whiteboardId: uri, page }, () => { board.page = page; });
}

$('pageBack').addEventListener('click', () => turn(-1));
$('pageOn').addEventListener('click', () => turn(1));

/** A board's address with the viewer's role and credential. */
function boardAddress(uri) {
  let whole;
  try { whole = new URL(uri); } catch { return null; }
  if (!['http:', 'https:'].includes(whole.protocol)) return null;
  const query = `role=${me().role}&roomId=${encodeURIComponent(room.roomID)}&authorization=${encodeURIComponent(room.authorization)}`;
  // A board of this server is opened at this page's own origin, whatever proxy is in between.
  const isOwn = whole.pathname.startsWith('/board/');
  const base = isOwn ? `${location.origin}${whole.pathname}${whole.search}` : whole.href;
  return { isOwn: isOwn || whole.origin === location.origin, href: `${base}${base.includes('?') ? '&' : '?'}${query}` };
}

function setStream(video, stream) {
  if (video.srcObject === (stream || null)) return;
  video.srcObject = stream || null;
  if (stream) video.play().catch(() => {});
}

const cameraOf = (id) => (id === room.id
  ? { stream: room.media, state: { video: Boolean(trackOf('video')), audio: Boolean(trackOf('audio')?.enabled) } }
  : room.streams.get(`${id} ${CAMERA}`));

function renderStage() {
  const { display } = room;
  let [stream, words, caption, board] = [null, '', '', null];
  if (!display) {
    words = word('shownNothing');
  } else if (display.kind === SHOW_BOARD) {
    board = boardAddress(display.uri);
    caption = boardName(room.boards.get(display.uri)?.name || '');
  } else {
    const isScreen = display.kind === SHOW_SCREEN;
    const name = nameOf(display.userId);
    const source = isScreen && display.userId === room.id ? null : isScreen ? room.streams.get(`${display.userId} ${SCREEN}`) : cameraOf(display.userId);
    stream = source?.state.video ? source.stream : null;
    caption = isScreen ? word('shownScreen', { name }) : word('shownPerson', { role: roleWord(display.kind + 1), name });
    if (!stream) {
      const isMine = isScreen && display.userId === room.id;
      const isOff = !isScreen && person(display.userId)?.camera === false;
      words = word(isMine ? 'shownMine' : isOff ? 'shownOff' : room.silent.has(display.userId) ? 'shownNone' : 'shownWait', { name });
    }
  }
  $('stage').classList.toggle('board', Boolean(board));
  $('stageVideo').hidden = !stream;
  $('stageVideo').classList.toggle('mirror', display?.userId === room.id && display?.kind !== SHOW_SCREEN);
  $('stageVideo').setAttribute('aria-label', caption);
  setStream($('stageVideo'), stream);
  const isFramed = Boolean(board?.isOwn);
  $('stageBoard').hidden = !isFramed;
  $('stageBoard').title = caption || word('stage');
  if (isFramed && $('stageBoard').getAttribute('src') !== board.href) $('stageBoard').src = board.href;
  if (!isFramed) $('stageBoard').removeAttribute('src');
  const content = board && !board.isOwn ? make('a', { href: board.href, target: '_blank', rel: 'noopener noreferrer' }, word('openBoard')) : words;
  if ($('stageWords').textContent !== (content.textContent ?? content)) $('stageWords').replaceChildren(content);
  if ($('stageCaption').textContent !== caption) $('stageCaption').textContent = caption;
}

// MARK: People

/** Updates an element's children to one for each item, in order, and reuses them by their data-id. */
function keep(parent, items, id, create, update) {
  const known = new Map([...parent.children].map((child) => [child.dataset.id, child]));
  let before = null;
  for (const item of items) {
    const key = id(item);
    let child = known.get(key);
    known.delete(key);
    if (!child) {
      child = create(item);
      child.dataset.id = key;
    }
    const next = before ? before.nextSibling : parent.firstChild;
    // A moved video stops for a moment, so only misplaced elements are moved.
    if (next !== child) parent.insertBefore(child, next);
    update(child, item);
    before = child;
  }
  for (const child of known.values()) child.remove();
}

const write = (element, text) => { if (element.textContent !== text) element.textContent = text; };

function offWord({ camera, microphone }) {
  if (!camera && !microphone) return word('bothOff');
  return microphone ? (camera ? '' : word('cameraOff')) : word('microphoneOff');
}

const shownName = ({ userId, userName }) => (userId === room.id ? word('you', { name: userName }) : userName);

function renderTiles() {
  const seated = [...room.channel.people.values()].filter(hasSeat).sort((one, other) => one.role - other.role);
  keep($('people'), seated, (each) => each.userId, (each) => make(
    'figure', { class: 'tile', role: 'listitem' },
    make('span', { class: 'initial', 'aria-hidden': 'true' }), make('video', { autoplay: true, playsInline: true, muted: each.userId === room.id }),
    make('span', { class: 'role' }), make('figcaption', {}, make('span', { class: 'who' }), make('span', { class: 'off' })),
  ), (tile, each) => {
    const source = cameraOf(each.userId);
    const video = tile.querySelector('video');
    tile.classList.toggle('self', each.userId === room.id);
    video.setAttribute('aria-label', shownName(each));
    // Also set without video, because it plays the sound.
    setStream(video, source?.stream);
    video.classList.toggle('dark', !source?.state.video);
    write(tile.querySelector('.initial'), [...each.userName][0] || '?');
    write(tile.querySelector('.role'), roleWord(each.role));
    tile.querySelector('.role').dataset.role = each.role;
    write(tile.querySelector('.who'), shownName(each));
    tile.querySelector('.who').title = each.userName;
    write(tile.querySelector('.off'), offWord(each));
  });
  const crowd = room.channel.people.size - seated.length;
  $('crowd').hidden = crowd === 0;
  write($('crowd'), word('crowd', { n: crowd }));
}

const control = (userId, body, done) => act('device/control', { userId, ...body }, done);
const asked = (name) => () => say(word('asked', { name }));

/** The assistant's actions on a member: [key, function]. */
function actionsOn({ userId, userName, role, camera, microphone }) {
  const name = userName;
  const kick = ['kick', () => sure('sureKick', name, () => act('kick', { userId }))];
  const handOver = ['handOver', () => sure('sureHandOver', name, () => act('transfer', { userId }))];
  if (role === AUDIENCE) return [['invite', () => act('upgrade/invite', { userId, role: STUDENT }, asked(name))], handOver, kick];
  return [
    microphone ? ['mute', () => control(userId, { microphoneOn: false })] : ['askMicrophone', () => control(userId, { microphoneOn: true }, asked(name))],
    camera ? ['hide', () => control(userId, { cameraOn: false })] : ['askCamera', () => control(userId, { cameraOn: true }, asked(name))],
    ...(role === STUDENT ? [['makeTeacher', () => act('change-role', { userId, role: TEACHER })]] : []),
    handOver, ['downgrade', () => act('downgrade', { users: [{ userId, role: AUDIENCE }] })], kick,
  ];
}

function renderMembers() {
  const all = [...room.channel.people.values()].sort((one, other) => one.role - other.role);
  const mayAct = me().role === ASSISTANT;
  write($('membersTitle'), `${word('people')} (${all.length})`);
  keep($('members'), all, (each) => each.userId, () => make('li'), (item, each) => {
    const actions = mayAct && each.userId !== room.id ? actionsOn(each) : [];
    const off = hasSeat(each) ? offWord(each) : '';
    const line = `${roleWord(each.role)}${off ? ` · ${off}` : ''}`;
    // Rebuilt only when it changes, so that an open menu and its focus stay.
    const look = JSON.stringify([each.userName, line, actions.map(([key]) => key)]);
    if (item.dataset.look === look) return;
    item.dataset.look = look;
    const isOpen = item.querySelector('details')?.open ?? false;
    const head = [make('span', { class: 'who' }, shownName(each)), ' ', make('span', { class: 'role' }, line)];
    if (!actions.length) return item.replaceChildren(...head);
    const buttons = actions.map(([key, run]) => make('button', { type: 'button', onclick: run, data: { action: key } }, word(key)));
    return item.replaceChildren(make('details', { open: isOpen }, make('summary', {}, ...head), make('div', { class: 'row' }, ...buttons)));
  });
}

function renderHands() {
  $('handsPanel').hidden = me().role !== ASSISTANT || room.hands.size === 0;
  keep($('hands'), [...room.hands], ([ticket]) => ticket, ([ticket, hand]) => {
    const answer = (path) => act(`speech/${path}`, { ticket }, () => room.hands.delete(ticket)).then((code) => {
      // Code 30: the ticket is gone on the server, too. If the class is full, it stays open, as a seat may become free.
      if (code !== 30 || !room) return;
      room.hands.delete(ticket);
      render();
    });
    return make(
      'li', {}, make('span', {}, word('wantsToSpeak', { name: hand.name })),
      make('button', { type: 'button', class: 'main', onclick: () => answer('approve') }, word('approve')),
      make('button', { type: 'button', onclick: () => answer('reject') }, word('reject')),
    );
  }, () => {});
}

// MARK: The rest of the page

function renderShows() {
  $('showPanel').hidden = !isLeading();
  if (!isLeading()) return;
  const { display } = room;
  const people = [...room.channel.people.values()];
  const [assistant, teacher] = [ASSISTANT, TEACHER].map((role) => people.find((each) => each.role === role));
  const items = [
    ...[[SHOW_ASSISTANT, assistant], [SHOW_TEACHER, teacher]].filter(([, each]) => each).map(([kind, { userId, role }]) => (
      { id: `role${role}`, text: roleWord(role), isOn: display?.kind === kind, run: () => show(kind, { userId }) })),
    ...[...room.boards].map(([uri, board]) => (
      { id: uri, text: boardName(board.name), isOn: display?.kind === SHOW_BOARD && display.uri === uri, run: () => show(SHOW_BOARD, { uri }) })),
    { id: 'nothing', text: word('nothing'), isOn: !display, run: () => show(SHOW_NOTHING) },
    { id: 'new', text: `+ ${word('newBoard')}`, run: () => act('whiteboard/create', {}, refreshBoards) },
  ];
  keep($('shows'), items, (item) => item.id, () => make('button', { type: 'button' }), (button, item) => {
    write(button, item.text);
    button.onclick = item.run;
    if (item.isOn !== undefined) button.setAttribute('aria-pressed', String(item.isOn));
  });
  const board = display?.kind === SHOW_BOARD ? room.boards.get(display.uri) : null;
  $('pages').hidden = !board;
  if (!board) return;
  $('pageBack').disabled = board.page <= 0;
  write($('page'), word('page', { n: board.page + 1 }));
  const { uri } = display;
  let remove = $('pages').querySelector('.remove');
  if (!remove) $('pages').append(remove = make('button', { type: 'button', class: 'remove' }, word('deleteBoard')));
  remove.onclick = () => sure('sureDelete', boardName(board.name), () => act('whiteboard/delete', { whiteboardId: uri }));
}

function renderControls() {
  const mine = me();
  const isSeated = mine.role !== AUDIENCE;
  for (const [id, isOn, on, off] of [['microphone', mine.microphone, 'mute', 'unmute'], ['camera', mine.camera, 'hide', 'unhide']]) {
    $(id).hidden = !isSeated;
    write($(id), word(isOn ? on : off));
    $(id).classList.toggle('isOff', !isOn);
  }
  $('screen').hidden = !isLeading() || !navigator.mediaDevices?.getDisplayMedia;
  write($('screen'), word(room.screen ? 'unshare' : 'share'));
  $('hand').hidden = isSeated;
  $('hand').disabled = room.isHandUp;
  $('hand').classList.toggle('main', !room.isHandUp);
  write($('hand'), word(room.isHandUp ? 'raised' : 'raise'));
  $('me').hidden = false;
  write($('me'), word('aboutMe', { name: mine.userName, role: roleWord(mine.role), room: room.roomID }));
}

function render() {
  if (!room || !room.channel.people.has(room.id)) return;
  if ($('status').textContent === word('alone') && room.channel.people.size > 1) say(word('inClass'));
  keepFocus(() => {
    renderControls();
    renderStage();
    renderTiles();
    renderHands();
    renderShows();
    renderMembers();
  });
}

/** Whoever was by keyboard on something that goes, or is made anew, is on its like afterwards, on its neighbour, or at the list of people. */
function keepFocus(change) {
  const was = document.activeElement;
  const item = was?.closest('#class [data-id]');
  const list = item?.parentElement;
  const index = item ? [...list.children].indexOf(item) : 0;
  change();
  if (!item || document.activeElement === was) return;
  const now = [...list.children].find((each) => each.dataset.id === item.dataset.id) ?? list.children[Math.min(index, list.children.length - 1)];
  const like = was.dataset.action ? now?.querySelector(`[data-action=${was.dataset.action}]`) : null;
  (like ?? now?.querySelector('summary, button') ?? $('membersTitle')).focus();
}

$('chat').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = $('line').value.trim();
  if (!text || !room) return;
  $('line').value = '';
  const here = room;
  try {
    await here.channel.send('RC:TxtMsg', { content: text, user: { id: here.id, name: here.name } });
    if (room === here) addLine($('lines'), here.name, text);
  } catch {
    if (room !== here) return;
    $('line').value = text;
    say(word('notSent'), true);
  }
});

// MARK: Live streams

let live = null;

function stopLive() {
  live?.stop();
  live = null;
  $('liveVideo').hidden = true;
  $('liveWords').textContent = '';
  for (const button of $('liveSlots').children) button.setAttribute('aria-pressed', 'false');
}

['liveTeacher', 'liveAssistant', 'liveScreen'].forEach((key, index) => {
  const button = make('button', { type: 'button', 'aria-pressed': 'false' }, word(key));
  button.addEventListener('click', async () => {
    const wasOn = button.getAttribute('aria-pressed') === 'true';
    stopLive();
    if (wasOn || !room) return;
    const here = room;
    const { LivePlayer } = await import('/demo/live-player.js');
    if (room !== here) return;
    const url = socketAddress(`/live/class-${encodeURIComponent(here.roomID)}${index ? `-${index + 1}` : ''}.mp4`);
    $('liveVideo').hidden = false;
    $('liveVideo').setAttribute('aria-label', word('liveVideo'));
    // The player's messages are in English only.
    live = new LivePlayer($('liveVideo'), url, (text) => write($('liveWords'), text && language ? word('liveWait') : text));
    button.setAttribute('aria-pressed', 'true');
    live.start();
  });
  $('liveSlots').append(button);
});
$('live').addEventListener('toggle', () => { if (!$('live').open) stopLive(); });
