import Access
import HTTPAPI
import HTTPServer
import HTTPTypes
import NIOCore
import Relay
import RoomRegistry
import Rooms
import Support
import Talk

enum URLRoutes {
    private static let slot = Input("slot", .whole(1...8), "The stream's slot in the room.", fallback: 1)
    private enum Name: String, Sendable, CaseIterable { case stream, device }
    private static let by = Input(
        "by", .choice() as InputType<Name>, "The name in the URL: the stream's, or the device's UID, which stands for slot 1.",
        fallback: .stream)
    private static let lifetime = Input(
        "lifetime", .whole(StreamURLs.lifetimeSeconds),
        "Seconds for which a push or play may begin with the URL; if omitted, the room's policy.urlLifetime.")
    private static let scheme = Input(
        "scheme", .choice() as InputType<StreamURLs.Scheme>, "txSecret: Tencent's signature; jwt: a token that can name a user.",
        fallback: .txSecret)
    private static let user = Input("userId", .id, "The user of the URL; implies the scheme jwt.")
    private static let size = Input("size", .whole(1...32), "Pixels per module.", fallback: 8)
    private static let signing: [any RequestInput] = [Self.lifetime, Self.scheme, Self.user]

    /// Push and play URLs, made and signed by the server.
    static let all: [ControlRoute] = [
        ControlRoute(
            .post, "/rooms/{roomId}/push-url", "makePushUrl", .urls, .backend, .room,
            "Make a signed push URL. The signature is checked when a push begins, never while it is running.", in: [RoomInputs.room],
            body: [Self.slot, Self.by] + Self.signing, answers: PushURLAnswer.outputType, failures: [.conflict],
            effect: .nothing
        ) { call in
            try await Self.push(call)
        },
        ControlRoute(
            .get, "/rooms/{roomId}/play-urls", "makePlayUrls", .urls, .backend, .room,
            "Make signed play URLs for all of a room's streams, and for the mix of its talk channel.", in: [RoomInputs.room],
            query: Self.signing, answers: PlayURLsAnswer.outputType
        ) { call in
            let room = try await call.rooms.room(try call.value(RoomInputs.room))
            let (urls, signing, now) = (try call.urls(), try Self.signing(call, room), WallClock.ms)
            let list = try room.slots.map { slot in PlayURLsAnswer.Stream(slot: slot, play: try urls.play(slot.path, signing, nowMs: now)) }
            let mix = StreamPath(app: TalkStreamName.app, name: "\(room.id)/\(TalkAddress.mix)")
            return PlayURLsAnswer(room: room, streams: list, talk: try urls.play(mix, signing, nowMs: now))
        },
        ControlRoute(
            raw: .get, "/rooms/{roomId}/push-url.svg", "drawPushUrl", .urls, .backend, .room,
            "Make a signed push URL and draw it as a QR code in SVG, for a device's camera.",
            in: [RoomInputs.room], query: [Self.slot, Self.by, Self.size] + Self.signing, type: "image/svg+xml",
            failures: [.conflict], isAudited: true
        ) { call in
            let code = try QRCode(try await Self.push(call).push.rtmp)
            return ByteBuffer(string: code.svg(moduleSize: Int(try call.value(Self.size))))
        },
        ControlRoute(
            raw: .get, "/rooms/{roomId}/push-url.png", "paintPushUrl", .urls, .backend, .room,
            "Make a signed push URL and draw it as a QR code, as a PNG picture.",
            in: [RoomInputs.room], query: [Self.slot, Self.by, Self.size] + Self.signing, type: "image/png",
            failures: [.conflict], isAudited: true
        ) { call in
            ByteBuffer(bytes: try QRCode(try await Self.push(call).push.rtmp).png(moduleSize: Int(try call.value(Self.size))))
        },
    ]

    private static func push(_ call: APICall) async throws -> PushURLAnswer {
        let room = try await call.rooms.room(try call.value(RoomInputs.room))
        // Only a closed room can never be pushed to again: a push reopens an expired one, and a ban ends.
        guard room.state != .closed else {
            let open = RoomState.allCases.filter { $0 != .closed }
            throw APIError(RegistryError.wrongState(room.id, state: room.state, action: "push-url", allowed: open))
        }
        let number = Int(try call.value(Self.slot))
        guard let slot = room.slots.first(where: { $0.number == number }) else {
            throw APIError(FieldError("slot", "\(number)", "expected 1 to \(room.slots.count), the room's streams"))
        }
        let path = try call.value(Self.by) == .device ? try await Self.devicePath(of: room, slot, call) : slot.path
        let push = try call.urls().push(path, try Self.signing(call, room), nowMs: WallClock.ms)
        return PushURLAnswer(room: room, slot: slot, path: path, push: push)
    }

    /// The device's path, which leads to slot 1 of the device's room.
    private static func devicePath(of room: Room, _ slot: Room.Slot, _ call: APICall) async throws -> StreamPath {
        guard let device = room.deviceUid else { throw APIError(FieldError("by", "device", "the room has no deviceUid")) }
        guard slot.number == 1 else { throw APIError(FieldError("slot", "\(slot.number)", "expected 1, the slot that a device pushes")) }
        let path = StreamPath(app: slot.app, name: device)
        // A stream of that name takes precedence over the device.
        if let other = try await call.rooms.room(ofStream: path), other.id != room.id {
            throw APIError(FieldError("by", "device", "\(path) is a stream of room \(other.id)"))
        }
        return path
    }

    private static func signing(_ call: APICall, _ room: Room) throws -> StreamURLs.Signing {
        let lifetime = call[Self.lifetime] ?? max(1, room.policy.urlLifetimeMs / 1_000)
        // Only a token can name a user.
        let scheme = call[Self.user] == nil ? try call.value(Self.scheme) : .jwt
        return StreamURLs.Signing(scheme: scheme, lifetimeSeconds: lifetime, user: call[Self.user], room: room.id)
    }
}

struct PushURLAnswer: Sendable {
    let room: Room
    let slot: Room.Slot
    /// The path in the URL: the stream's or the device's.
    let path: StreamPath
    let push: StreamURLs.Push

    static let outputType = OutputType<PushURLAnswer>.object(
        "PushUrl",
        [
            .field("roomId", .text, "The room.") { $0.room.id.rawValue },
            .field("slot", .whole(1...8), "The stream's slot in the room.", \.slot.number),
            .field("app", .text, "The app in the URL.", \.path.app),
            .field("name", .text, "The name in the URL: the stream's or the device's.", \.path.name),
            .field("rtmp", .uri, "Where to push over RTMP. Contains a credential.", \.push.rtmp),
            .field("rtmps", .nullable(.uri), "The same over RTMPS, if the server offers it.", \.push.rtmps),
            .field("whip", .nullable(.uri), "The same by WebRTC, for a WHIP client's POST; null while it is off.", \.push.whip),
            .field("server", .text, "The first part of `rtmp`, for encoders that ask for server and stream key.", \.push.server),
            .field("streamKey", .text, "The rest of `rtmp`. Contains a credential.", \.push.streamKey),
            .field("expiresAt", .instant, "A push may begin with the URL until this time.", \.push.expiresAt),
        ])
}

struct PlayURLsAnswer: Sendable {
    struct Stream: Sendable {
        let slot: Room.Slot
        let play: StreamURLs.Play
    }

    let room: Room
    let streams: [Stream]
    /// The mix of the room's talk channel.
    let talk: StreamURLs.Play

    static let outputType = OutputType<PlayURLsAnswer>.object(
        "SignedPlayUrls",
        [
            .field("roomId", .text, "The room.") { $0.room.id.rawValue },
            .field("streams", .list(Self.stream), "The room's streams, by slot.", \.streams),
            .field("talk", Self.mix, "Everybody in the room's talk channel, while it is open.", \.self),
        ])

    private static let mix = OutputType<PlayURLsAnswer>.object(
        "SignedTalkUrl",
        [
            .field("app", .text, "The talk channel's app.") { _ in TalkStreamName.app },
            .field("name", .text, "The mix's name.") { "\($0.room.id)/\(TalkAddress.mix)" },
            .field("rtmp", .uri, "RTMP. Contains a credential, as the other URLs do.", \.talk.rtmp),
            .field("rtmps", .nullable(.uri), "RTMPS, if the server offers it.", \.talk.rtmps),
            .field("flv", .uri, "HTTP-FLV; with ws:// in place of http:// over a WebSocket.", \.talk.flv),
            .field("mp4", .uri, "Endless fragmented MP4; with ws:// in place of http:// over a WebSocket.", \.talk.mp4),
            .field("expiresAt", .nullable(.instant), "Listening may begin with the URLs until this time.", \.talk.expiresAt),
        ])

    private static let stream = OutputType<Stream>.object(
        "SignedPlayUrl",
        [
            .field("slot", .whole(1...8), "The stream's slot in the room.", \.slot.number),
            .field("app", .text, "The stream's app.", \.slot.app),
            .field("name", .text, "The stream's name.", \.slot.name),
            .field("rtmp", .uri, "RTMP. Contains a credential, as the other URLs do.", \.play.rtmp),
            .field("rtmps", .nullable(.uri), "RTMPS, if the server offers it.", \.play.rtmps),
            .field("flv", .uri, "HTTP-FLV; with ws:// in place of http:// over a WebSocket.", \.play.flv),
            .field("hls", .uri, "HLS.", \.play.hls),
            .field("hlsTs", .uri, "HLS with segments of MPEG-TS, for old players.", \.play.hlsTS),
            .field("mp4", .uri, "Endless fragmented MP4; with ws:// in place of http:// over a WebSocket.", \.play.mp4),
            .field("whep", .nullable(.uri), "WebRTC, for a WHEP client's POST; null while it is off.", \.play.whep),
            .field("expiresAt", .nullable(.instant), "A play may begin with the URLs until this time.", \.play.expiresAt),
        ])
}
