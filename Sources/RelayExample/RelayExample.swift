import Access
import HTTPServer
import Hummingbird
import Listening
import Logging
import Outbound
import Packaging
import Playback
import RTMPServer
import ServerConfiguration
import ServiceLifecycle
import Sockets
import Streaming
import Support

/// An RTMP server whose streams play as RTMP, HLS, FLV and MP4: what a frame's way needs, without rooms, store, API and talk. Its arguments are ports
/// of loopback, `RelayExample 1935 8080`.
@main struct RelayExample {
    static func main() async throws {
        var settings = ServerConfig()
        (settings.rtmp.listen.port, settings.http.listen.port) = (Self.port(1) ?? 1_935, Self.port(2) ?? 8_080)
        let config = Live(settings)
        let (log, group) = (Logger(label: "relay"), SocketLoopGroup.singleton)
        let (memory, sweepers) = (MemoryBudget(settings.limits), LoopSweepers(group))
        let (rooms, talk, sessions, outbound) = (OpenRooms(), NoTalk(), HLSSessions(), OutboundClient(config))
        let streams = LiveStreams(settings, group: group, sweepers: sweepers, ledger: memory.ledger, log: log)
        let connections = Connections(config, pressures: streams.pressures, sweepers: sweepers, log: log)
        let keys = KeyRing(key: Self.key(), backupKey: nil, jwtKey: Self.key(), webhookKey: Self.key())
        let rules = AdmissionRules(config, Live(keys), outbound: outbound, log: log)
        let admission = RoomAdmission(config, rooms, rules, memory, ActivePushes(), streams)
        let remuxers = RemuxTable(config, rooms, streams, memory.ledger, limits: connections.counters.limits, log: log) {
            sessions.play($0, $1)
        }
        streams.whenPublished { stream, _ in remuxers.publishBegan(stream) }
        let rtmp = RTMPListener(
            services: RTMPServices(config, streams, connections, admission, talk), address: settings.rtmp.listen, certificate: nil,
            sockets: ListeningSockets(loops: group, log: log))
        let playback = PlaybackServices(config, streams, connections, admission, remuxers, talk, sessions)
        let (hls, router) = (HLSEndpoint(services: playback), Router(context: APIContext.self))
        router.get("/**") { await hls.respond(to: $0, $1) }
        let http = HTTPService(
            responder: router.buildResponder(), address: settings.http.listen,
            shared: HTTPServerChannel.Shared(
                limits: HTTPLimits(settings), handoffs: [LiveEndpoint(services: playback)], sweepers: sweepers, access: settings.access,
                clients: connections.clients, proxies: connections.proxies, counters: connections.counters, ledger: memory.ledger),
            placement: streams.placement, gate: connections.httpGate, sockets: ListeningSockets(loops: group, log: log), group: group,
            log: log)
        streams.start()
        let addresses = BoundAddresses(rtmp: try await rtmp.bind(), rtmps: nil, http: try await http.bind(), https: nil)
        connections.isBound(to: addresses)
        log.notice("Push and play rtmp://\(addresses.rtmp)/live/NAME, play http://\(addresses.http)/live/NAME.m3u8")
        try await ServiceGroup(services: [outbound, rtmp, http], logger: log).run()
    }

    private static func key() -> String { SecretText.hex((0..<32).map { _ in UInt8.random(in: 0...255) }) }
    private static func port(_ position: Int) -> Int? { CommandLine.arguments.dropFirst(position).first.flatMap { Int($0) } }
}
