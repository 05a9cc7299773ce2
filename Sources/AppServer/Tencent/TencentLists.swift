import Access
import Apps
import Media
import Relay
import RoomRegistry
import Rooms
import ServerConfiguration
import Streaming
import Support

/// The lists of the cloud's API, from running streams and from the store. Any thread.
struct TencentLists {
    let services: AppServices

    enum State: String { case active, inactive, forbid }

    /// A running push whose media arrives, and its stream's figures.
    private struct Running {
        let push: StoredPush
        let stream: StreamSnapshot
    }

    /// In the order in which the pushes began.
    private func running(_ isWanted: (StreamPath) -> Bool) async throws -> [Running] {
        let pushes = try await self.services.rooms.runningPushes().filter { isWanted($0.path) && !TalkStreamName.isMix($0.path) }
        guard !pushes.isEmpty else { return [] }
        let live = try await self.services.streams.collect { $0.relay.streamSnapshots() }.filter(\.hasPublisher)
        let streams = Dictionary(live.map { ($0.path, $0) }) { first, _ in first }
        // During a takeover, a ghost and the new push both exist for a moment: the newer one counts.
        let newest = Dictionary(pushes.map { ($0.path, $0) }) { $0.sequence > $1.sequence ? $0 : $1 }
        return newest.values.sorted { $0.sequence < $1.sequence }.compactMap { push in
            streams[push.path.description].map { Running(push: push, stream: $0) }
        }
    }

    /// A figure that the publisher reports, which may have any value; 0 when it reports none.
    private static func whole(_ figure: Double?) -> JSONValue {
        guard let figure, figure > 0, figure < 1e12 else { return 0 }
        return .integer(Int64(figure.rounded()))
    }

    private func cut<Entry>(_ entries: [Entry], to page: TencentAction.Page) -> [Entry] {
        guard page.offset < entries.count else { return [] }
        return Array(entries[page.offset...].prefix(page.size))
    }

    func online(app: String?, name: String?, _ page: TencentAction.Page) async throws -> [JSONValue.Member] {
        let all = try await self.running { (app == nil || $0.app.exact == app?.exact) && (name == nil || $0.name.exact == name?.exact) }
        let domain = self.domain
        let entries = self.cut(all, to: page).map { running -> JSONValue in
            [
                "StreamName": .string(running.push.path.name), "AppName": .string(running.push.path.app), "DomainName": .string(domain),
                "PublishTimeList": [["PublishTime": .string(TencentAnswer.utc(running.push.startedAt))]], "PushToDelay": 0,
            ]
        }
        return TencentAnswer.page(page, total: all.count, "OnlineInfo", entries)
    }

    func state(of path: StreamPath) async throws -> State {
        if try await self.services.rooms.ban(of: path) != nil { return .forbid }
        // Consistent with the push's later history: a push that ends before media was noted was never active.
        return try await self.services.rooms.runningPushes(of: path).contains { $0.mediaAt != nil } ? .active : .inactive
    }

    func history(
        _ history: TencentAction.History, _ page: TencentAction.Page, _ list: TencentAction.HistoryList
    ) async throws -> [JSONValue.Member] {
        var query = EndedPushQuery(fromMs: history.fromMs, toMs: history.toMs)
        query.app = history.app
        query.name = history.name
        query.isExact = history.isExact
        query.onlyWithMedia = history.onlyWithMedia
        query.isAscending = history.isAscending
        query.offset = page.offset
        query.limit = page.size
        let found = try await self.services.rooms.endedPushes(query)
        let domain = self.domain
        let entries = found.list.map { push -> JSONValue in
            let ended = push.endedAt ?? push.startedAt
            return [
                "StreamName": .string(push.path.name), "AppName": .string(push.path.app), "DomainName": .string(domain),
                "StreamStartTime": .string(TencentAnswer.utc(push.startedAt)), "StreamEndTime": .string(TencentAnswer.utc(ended)),
                "StopReason": .string(push.end?.rawValue ?? ""), "Duration": .integer(max(0, ended - push.startedAt) / 1_000),
                "ClientIp": .string(push.clientAddress), "Resolution": .string(Self.resolution(push.media.width, push.media.height)),
            ]
        }
        return TencentAnswer.page(page, total: found.total, list.rawValue, entries)
    }

    func forbidden(name: String?, _ page: TencentAction.Page) async throws -> [JSONValue.Member] {
        let bans = try await self.services.rooms.bans(ofName: name)
        let domain = self.domain
        let entries = self.cut(bans, to: page).map { ban -> JSONValue in
            [
                "StreamName": .string(ban.path.name), "AppName": .string(ban.path.app), "DomainName": .string(domain),
                "CreateTime": .string(TencentAnswer.beijing(ban.createdAt)), "ExpireTime": .string(TencentAnswer.beijing(ban.resumeAt)),
            ]
        }
        return TencentAnswer.page(page, total: bans.count, "ForbidStreamList", entries)
    }

    func pushInfo(app: String?, _ page: TencentAction.Page) async throws -> [JSONValue.Member] {
        let all = try await self.running { app == nil || $0.app.exact == app?.exact }
        let (domain, server) = (self.domain, self.services.config.rtmp.listen.host)
        let entries = self.cut(all, to: page).map { running -> JSONValue in
            let (push, meter) = (running.push, running.stream.meter)
            return [
                "StreamName": .string(push.path.name), "AppName": .string(push.path.app), "PushDomain": .string(domain),
                "ClientIp": .string(push.clientAddress), "ServerIp": .string(server),
                "BeginPushTime": .string(TencentAnswer.utc(push.startedAt)),
                "VideoFps": .integer(Int64(meter.framesPerSecond.rounded())), "VideoSpeed": .integer(Int64(meter.videoBitsPerSecond)),
                "AudioFps": .integer(Int64(meter.audioFramesPerSecond.rounded())), "AudioSpeed": .integer(Int64(meter.audioBitsPerSecond)),
                "Vcodec": .string(meter.video.map { Self.word($0.codec.name) } ?? ""),
                "Acodec": .string(meter.audio.map { Self.word($0.codec.name) } ?? ""),
                "Resolution": .string(Self.resolution(meter.video?.width, meter.video?.height)),
                "AsampleRate": .integer(Int64(meter.audio?.sampleRate ?? 0)),
                "MetaAudioSpeed": Self.whole(running.stream.announcedAudioBitsPerSecond),
                "MetaVideoSpeed": Self.whole(running.stream.announcedVideoBitsPerSecond),
                "MetaFps": Self.whole(running.stream.announcedFramesPerSecond),
            ]
        }
        return TencentAnswer.page(page, total: all.count, "DataInfoList", entries)
    }

    /// The host of the push URLs that this server hands out.
    private var domain: String {
        self.services.config.apps.tencentDomains.first
            ?? self.services.config.urls.rtmp.flatMap { PublicAddress.host(String($0.drop { $0 != "/" }.dropFirst(2))) }
            ?? self.services.config.rtmp.listen.host
    }

    /// "H264" and "AAC", in the cloud's spelling.
    private static func word(_ codec: String) -> String { codec.uppercased() }

    private static func resolution(_ width: Int?, _ height: Int?) -> String {
        guard let width, let height, width > 0, height > 0 else { return "" }
        return "\(width)x\(height)"
    }
}

extension StreamSnapshot {
    var hasPublisher: Bool { if case .live = self.phase { true } else { false } }
}
