"""An app's use of RongIMLib and RongRTC, in two pages that have loaded nothing but /sdk/rong.js."""
import json

# An app, as small as it can be: what it hears goes into `heard`.
APP = """(async () => {
    const heard = window.heard = [];
    const { RongIMClient, MessageTag, ConversationType } = RongIMLib;
    RongIMClient.init('any key', null, {});
    RongIMClient.registerMessageType('DisplayMessage', 'SC:DisplayMsg', new MessageTag(false, false), ['display']);
    RongIMClient.registerMessageType('MemberMessage', 'SC:RMCMsg', new MessageTag(false, false), ['userId', 'action']);
    RongIMClient.setConnectionStatusListener({ onChanged: (status) => heard.push(`status ${status}`) });
    RongIMClient.setOnReceiveMessageListener({ onReceived: (message) => {
        if (message.conversationType !== ConversationType.GROUP || message.targetId !== 'sdk') heard.push('a message of another conversation');
        const { content, messageType, messageDirection, senderUserId } = message;
        heard.push(`${messageType} ${messageDirection} ${content.content ?? content.display ?? content.action}`);
    } });
    const id = await new Promise((resolve, reject) => RongIMClient.connect(TOKEN, {
        onSuccess: resolve, onTokenIncorrect: () => reject(new Error('token')), onError: reject }));
    const rtc = window.rtc = new RongRTC({ appkey: 'any key', RongIMLib, error: (error) => heard.push(`error ${error}`) });
    const listen = (name) => (user) => heard.push(`${name} ${user.stream ? user.stream.tag : ''}`.trim());
    const room = window.room = new rtc.Room({ id: 'sdk', joined: listen('joined'), left: listen('left') });
    const streams = window.streams = new rtc.Stream({
        published: async (user) => {
            const { stream } = await streams.subscribe(user);
            heard.push(`published ${stream.tag} ${stream.type} ${JSON.stringify(stream.enable)}`);
            window.video = Object.assign(document.createElement('video'), { muted: true, srcObject: stream.mediaStream });
            video.play();
        },
        unpublished: listen('unpublished'), disabled: listen('disabled'), enabled: listen('enabled'), muted: listen('muted'), unmuted: listen('unmuted'),
    });
    await room.join({ id, token: TOKEN });
    window.me = id;
    return id;
})()"""

PUBLISH = """(async () => {
    const mediaStream = await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 320, height: 240 } });
    await streams.publish({ id: me, stream: { tag: 'RongCloudRTC', type: rtc.StreamType.AUDIO_AND_VIDEO, mediaStream } });
})()"""

SEND = """new Promise((resolve, reject) => RongIMLib.RongIMClient.getInstance().sendMessage(RongIMLib.ConversationType.GROUP, 'sdk',
    new RongIMLib.TextMessage({ content: 'hello', user: { id: me, name: 'Ann' } }), {
        onBefore: () => {}, onSuccess: (message) => resolve([message.messageType, message.messageDirection, message.content.content]), onError: reject }))"""

HISTORY = """new Promise((resolve, reject) => RongIMLib.RongIMClient.getInstance().getHistoryMessages(RongIMLib.ConversationType.GROUP, 'sdk', 0, 20, {
    onSuccess: (list, hasMore) => resolve([list.map((message) => message.content.content), hasMore]), onError: reject }))"""

RECONNECT = """new Promise((resolve, reject) => RongIMLib.RongIMClient.reconnect({
    onSuccess: resolve, onTokenIncorrect: reject, onError: reject }, { auto: true, url: 'anything', rate: [1000] }))"""


def run(server, browser, call):
    def join(name):
        joined = call(server, "join", {"roomId": "sdk", "userName": name})["data"]["result"]
        page = browser.page(f"http://{server.http}/sdk/rong.js")
        page.wait("document.readyState === 'complete' && document.body.innerText.length > 0", "a page of this server")
        page.run(f"new Promise((resolve, reject) => document.documentElement.append(Object.assign(document.createElement('script'), "
                 f"{{ src: 'http://{server.http}/sdk/rong.js', onload: resolve, onerror: reject }})))")
        return page, joined

    def hears(page, *lines):
        for line in lines:
            try:
                page.wait(f"heard.includes({json.dumps(line)})", line, 30)
            except Exception as error:
                raise AssertionError(f"{line} is not among {page.run('heard')}") from error

    ann, joined = join("Ann")
    assert ann.run("(async () => { try { await (" + APP.replace("TOKEN", "'nonsense'") + "); } catch (error) { return error.message; } })()") == "token"
    token = json.dumps(joined["imToken"])
    assert ann.run(APP.replace("TOKEN", token)) == joined["userInfo"]["userId"]
    hears(ann, "status 1", "status 0")
    ann.run(PUBLISH)
    assert ann.run(SEND) == ["TextMessage", 1, "hello"]
    bob, other = join("Bob")
    hears(ann, "MemberMessage 2 1")
    bob.run(APP.replace("TOKEN", json.dumps(other["imToken"])))
    assert bob.run(HISTORY) == [["hello"], False]
    hears(bob, "joined", 'published RongCloudRTC 2 {"video":true,"audio":true}')
    hears(ann, "joined")
    bob.wait("video.videoWidth === 320 && video.currentTime > 0", "Ann's picture at Bob", 30)
    bob.run(PUBLISH)
    hears(ann, 'published RongCloudRTC 2 {"video":true,"audio":true}')
    ann.wait("video.videoWidth === 320 && video.currentTime > 0", "Bob's picture at Ann", 30)
    for method, event in [("audio.mute", "muted"), ("audio.unmute", "unmuted"), ("video.disable", "disabled"), ("video.enable", "enabled")]:
        ann.run(f"streams.{method}({{ id: me, stream: {{ tag: 'RongCloudRTC' }} }}).then(() => 0)")
        hears(bob, f"{event} RongCloudRTC")
    bob.run("streams.resize({ id: 'ann', stream: { tag: 'RongCloudRTC', size: rtc.StreamSize.MAX } }).then(() => 0)")
    call(server, "display", {"roomId": "sdk", "type": 0}, joined["authorization"])
    hears(bob, f"DisplayMessage 2 display://type=0?userId={joined['userInfo']['userId']}?uri=")
    ann.run("streams.unpublish({ id: me, stream: { tag: 'RongCloudRTC' } }).then(() => 0)")
    hears(bob, "unpublished RongCloudRTC")

    # The server goes and comes back; an app asks to reconnect, as it is used to.
    server.stop()
    hears(bob, "status 3")
    server.start()
    assert bob.run(RECONNECT) == other["userInfo"]["userId"]
    ann.wait("RongIMLib.RongIMClient.getInstance().getCurrentConnectionStatus() === RongIMLib.ConnectionStatus.CONNECTED", "Ann to be back", 40)
    assert ann.run(SEND) == ["TextMessage", 1, "hello"]
    hears(bob, "TextMessage 2 hello")

    # Somebody else with the same token, and the end by the member itself.
    third, _ = join("Nobody")
    third.run(APP.replace("TOKEN", json.dumps(other["imToken"])))
    hears(bob, "status 6")
    third.run("room.leave().then(() => RongIMLib.RongIMClient.getInstance().logout())")
    hears(third, "status 2")
    call(server, "kick", {"roomId": "sdk", "userId": other["userInfo"]["userId"]}, joined["authorization"])
    hears(ann, "left", "MemberMessage 1 3")
