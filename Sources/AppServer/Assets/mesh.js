// The mesh room's page: joins a room over the server's WebSocket and connects to everybody in it. Newcomers offer, the others answer.

const $ = (id) => document.getElementById(id);
const words = {
  title: ["Mesh room", "网状房间"], name: ["Your name", "你的名字"], room: ["Room", "房间"], join: ["Join", "加入"],
  listen: ["Join without camera", "不开摄像头加入"], mute: ["Mute", "静音"], camera: ["Camera off", "关闭摄像头"], leave: ["Leave", "离开"],
  message: ["Message", "消息"], send: ["Send", "发送"], people: ["People", "成员"], you: ["you", "你"],
  asking: ["Your browser asks for camera and microphone.", "浏览器正在请求摄像头和麦克风。"],
  refused: ["The camera or microphone was refused. Allow them beside the address and join again, or join without.",
    "摄像头或麦克风被拒绝。请在地址栏旁允许后重新加入，或不开摄像头加入。"],
  missing: ["There is no camera or microphone. You can join without.", "没有找到摄像头或麦克风。可以不开摄像头加入。"],
  busy: ["The camera or microphone is in use by another program.", "摄像头或麦克风正被其他程序使用。"],
  insecure: ["Browsers give cameras only to pages over HTTPS or on this machine. You can join without.",
    "浏览器只允许 HTTPS 页面或本机页面使用摄像头。可以不开摄像头加入。"],
  connecting: ["Connecting…", "正在连接…"], alone: ["You are alone in this room.", "房间里只有你一人。"],
  here: ["people are here.", "人在房间里。"], full: ["This room is full.", "房间已满。"],
  lost: ["The connection to the server was lost. Trying again…", "与服务器的连接已断开，正在重试…"],
  denied: ["The server did not let this page in. It may need a token.", "服务器拒绝了此页面，可能需要令牌。"],
  left: ["You have left.", "你已离开。"], replaced: ["This room is open in another window.", "此房间已在另一个窗口打开。"],
  kicked: ["You were removed from this room.", "你已被移出房间。"], ended: ["This room has been closed.", "房间已关闭。"],
  notIn: ["The server did not let you into this room.", "服务器不允许你进入此房间。"],
};
const language = (navigator.language || "en").toLowerCase().startsWith("zh") ? 1 : 0;
const word = (key) => words[key][language];

document.documentElement.lang = language ? "zh" : "en";
document.title = word("title");
$("title").textContent = word("title");
for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
$("people").setAttribute("aria-label", word("people"));

const address = new URLSearchParams(location.search);
$("room").value = address.get("room") || "lobby";
$("name").value = address.get("name") || "";

let media = null;
let socket = null;
let me = { name: "", room: "", wants: false };
let wait = 1000;
let iceServers = [];
const peers = new Map();

function say(text, isBad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", isBad);
}

function tell() {
  if (socket && socket.readyState === WebSocket.OPEN) say(peers.size === 0 ? word("alone") : `${peers.size + 1} ${word("here")}`);
}

// MARK: People

function tile(id, name, stream) {
  let figure = $("people").querySelector(`[data-id="${CSS.escape(id)}"]`);
  if (!figure) {
    figure = document.createElement("figure");
    figure.dataset.id = id;
    const video = document.createElement("video");
    video.autoplay = true;
    video.playsInline = true;
    figure.append(video, document.createElement("figcaption"));
    $("people").append(figure);
  }
  figure.classList.toggle("self", id === "self");
  figure.querySelector("figcaption").textContent = name;
  const video = figure.querySelector("video");
  video.muted = id === "self";
  if (stream && video.srcObject !== stream) {
    video.srcObject = stream;
    video.play().catch(() => {});
  }
}

function drop(id) {
  const peer = peers.get(id);
  if (!peer) return;
  peers.delete(id);
  peer.connection.close();
  $("people").querySelector(`[data-id="${CSS.escape(id)}"]`)?.remove();
  tell();
}

function line(name, text) {
  const item = document.createElement("li");
  item.textContent = `${name}: ${text}`;
  $("lines").append(item);
  while ($("lines").children.length > 200) $("lines").firstChild.remove();
}

// MARK: Connections

function connect(id, offers) {
  const connection = new RTCPeerConnection({ iceServers });
  const peer = { connection, name: id.slice(0, 8), channel: null, candidates: [] };
  peers.set(id, peer);
  const stream = new MediaStream();
  for (const track of media ? media.getTracks() : []) connection.addTrack(track, media);
  if (!media || media.getVideoTracks().length === 0) connection.addTransceiver("video", { direction: "recvonly" });
  if (!media || media.getAudioTracks().length === 0) connection.addTransceiver("audio", { direction: "recvonly" });
  connection.addEventListener("track", (event) => {
    stream.addTrack(event.track);
    tile(id, peer.name, stream);
  });
  connection.addEventListener("icecandidate", (event) => {
    if (!event.candidate) return;
    const { candidate, sdpMLineIndex, sdpMid } = event.candidate;
    send("__ice_candidate", { socketId: id, label: sdpMLineIndex, id: sdpMid, candidate });
  });
  const open = (channel) => {
    peer.channel = channel;
    channel.addEventListener("open", () => channel.send(JSON.stringify({ name: me.name })));
    channel.addEventListener("message", (event) => hear(id, event.data));
  };
  if (offers) open(connection.createDataChannel("talk"));
  else connection.addEventListener("datachannel", (event) => open(event.channel));
  tile(id, peer.name, stream);
  return peer;
}

function hear(id, data) {
  const peer = peers.get(id);
  if (!peer || typeof data !== "string" || data.length > 4000) return;
  let message;
  try { message = JSON.parse(data); } catch { return; }
  if (typeof message?.name === "string") {
    peer.name = message.name.slice(0, 64);
    tile(id, peer.name);
  } else if (typeof message?.text === "string") {
    line(peer.name, message.text.slice(0, 500));
  }
}

async function offer(id) {
  const { connection } = connect(id, true);
  await connection.setLocalDescription();
  send("__offer", { socketId: id, sdp: connection.localDescription });
}

async function take(peer, description) {
  await peer.connection.setRemoteDescription(description);
  for (const candidate of peer.candidates.splice(0)) await peer.connection.addIceCandidate(candidate);
}

const events = {
  _peers(data) {
    wait = 1000;
    // Their credentials expire. That is enough: each newcomer has new ones, and one side's relay serves both.
    iceServers = data.iceServers || [];
    for (const id of [...peers.keys()]) drop(id);
    for (const id of data.connections) offer(id).catch(() => drop(id));
    tell();
  },
  _new_peer(data) {
    connect(data.socketId, false);
    tell();
  },
  _remove_peer(data) { drop(data.socketId); },
  async _offer(data) {
    const peer = peers.get(data.socketId) || connect(data.socketId, false);
    await take(peer, data.sdp);
    await peer.connection.setLocalDescription();
    send("__answer", { socketId: data.socketId, sdp: peer.connection.localDescription });
  },
  async _answer(data) {
    const peer = peers.get(data.socketId);
    if (peer) await take(peer, data.sdp);
  },
  async _ice_candidate(data) {
    const peer = peers.get(data.socketId);
    if (!peer) return;
    const candidate = { candidate: data.candidate, sdpMLineIndex: data.sdpMLineIndex, sdpMid: data.sdpMid };
    if (peer.connection.remoteDescription) await peer.connection.addIceCandidate(candidate);
    else peer.candidates.push(candidate);
  },
  _error(data) { if (data.code === "full") { me.wants = false; say(word("full"), true); } },
};

function send(eventName, data) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ eventName, data }));
}

function open() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  const query = token ? `?token=${encodeURIComponent(token)}` : "";
  const here = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/mesh/${query}`);
  socket = here;
  let wasOpen = false;
  say(word("connecting"));
  here.addEventListener("open", () => {
    wasOpen = true;
    send("__join", { room: me.room, ice: true });
  });
  here.addEventListener("message", (event) => {
    let frame;
    try { frame = JSON.parse(event.data); } catch { return; }
    const handler = events[frame.eventName];
    if (handler) Promise.resolve(handler(frame.data || {})).catch((error) => console.warn(frame.eventName, error));
  });
  here.addEventListener("close", ({ code }) => {
    if (socket !== here) return;
    for (const id of [...peers.keys()]) drop(id);
    if (!me.wants) return;
    // The reason why a full room refuses is already shown.
    const final = { 4001: "replaced", 4002: "kicked", 4003: "notIn", 4004: "ended" }[code];
    if (final) {
      me.wants = false;
      return say(word(final), true);
    }
    say(word(wasOpen || wait > 1000 ? "lost" : "denied"), true);
    setTimeout(() => { if (me.wants && socket === here) open(); }, wait);
    wait = Math.min(wait * 2, 15000);
  });
}

// MARK: The user

async function start(withMedia) {
  if (!$("join").reportValidity()) return;
  me = { name: $("name").value.trim() || "?", room: $("room").value.trim(), wants: true };
  media = null;
  if (withMedia) {
    if (!navigator.mediaDevices?.getUserMedia) return say(word("insecure"), true);
    say(word("asking"));
    try {
      media = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 320, height: 240 } });
    } catch (error) {
      const reason = { NotAllowedError: "refused", SecurityError: "refused", NotFoundError: "missing", OverconstrainedError: "missing" };
      return say(word(reason[error.name] || "busy"), true);
    }
  }
  $("join").hidden = true;
  $("controls").hidden = false;
  if (media) tile("self", `${me.name} (${word("you")})`, media);
  open();
}

function leave() {
  me.wants = false;
  const here = socket;
  socket = null;
  for (const id of [...peers.keys()]) drop(id);
  here?.close(1000);
  for (const track of media ? media.getTracks() : []) track.stop();
  media = null;
  $("people").replaceChildren();
  $("join").hidden = false;
  $("controls").hidden = true;
  say(word("left"));
}

function toggle(button, kind) {
  const isOff = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", String(isOff));
  for (const track of media ? media.getTracks() : []) if (track.kind === kind) track.enabled = !isOff;
}

$("join").addEventListener("submit", (event) => { event.preventDefault(); start(true); });
$("listen").addEventListener("click", () => start(false));
$("leave").addEventListener("click", leave);
$("mute").addEventListener("click", () => toggle($("mute"), "audio"));
$("camera").addEventListener("click", () => toggle($("camera"), "video"));
$("chat").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("line").value.trim();
  if (!text) return;
  for (const { channel } of peers.values()) if (channel?.readyState === "open") channel.send(JSON.stringify({ text }));
  line(me.name, text);
  $("line").value = "";
});
