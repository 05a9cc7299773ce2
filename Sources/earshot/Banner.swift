import Commands
import CommandSupport
import LibC
import Logging
import ServerConfiguration
import Support

/// Prints the addresses to try when the server starts.
enum Banner {
    static func print(_ addresses: BoundAddresses, _ config: ServerConfig, tokenFile: String?, consoleCode: String?) {
        let rtmp = "rtmp://\(Self.reachable(addresses.rtmp))/live/cam1"
        let talk = "rtmp://\(Self.reachable(addresses.rtmp))/talk/cam1"
        let http = "http://\(Self.reachable(addresses.http))"
        // The options with which a command on this machine finds this server and its token.
        let server = http == "\(ServerAddress.standard)" ? "" : " --server \(http)"
        let options = server + (config.data.directory == DataDirectory.standard ? "" : " --data \(config.data.directory)")
        var lines = [
            "earshot is running.",
            "  push    ffmpeg -re -i VIDEO -c copy -f flv \(rtmp)",
            "  play    ffplay \(rtmp)",
            "          \(http)/live/cam1.m3u8  (HLS), .flv, .mp4\(addresses.webrtc == nil ? "" : ", \(http)/whep/live/cam1  (WebRTC)")",
            "  talk    publish \(talk)/ME, play \(talk)/mix-ME  (everybody but me)",
        ]
        if let rtmps = addresses.rtmps { lines.append("  secure  rtmps://\(Self.reachable(rtmps))/live/cam1") }
        if config.console.isEnabled {
            lines.append("  console \(http)/\(consoleCode.map { "#code=\($0)" } ?? "")")
            if consoleCode != nil {
                lines.append(
                    "          (logs a browser on this machine in, once and within five minutes; later: earshot console\(options))")
            }
        }
        if config.apps.meshPage { lines.append("  apps    \(http)/mesh/  (a video room of browsers)") }
        if config.apps.demo { lines.append("          \(http)/demo/class, \(http)/demo/machine  (to try a class and a claw machine)") }
        lines += [
            "  API     \(http)/api/v1/rooms  (described at /api/v1/openapi.json)"
        ]
        if let https = addresses.https { lines.append("          https://\(Self.reachable(https))/api/v1/rooms") }
        lines += [
            tokenFile.map { "          token in \($0); try: earshot rooms list\(options)" }
                ?? "          needs a token; to make another one: earshot token create NAME --role admin",
            "  events  \(http)/events  (WebSocket)",
            "  health  \(http)/healthz",
        ]
        if config.access == ServerConfig.Access() {
            lines += [
                "Pushing and playing from this machine need no credential. To serve others, set rtmp.listen; they need a signed URL",
                "(earshot rooms push-url). The API answers this machine only (access.apiFrom).",
            ]
        }
        lines.append("Stop with Ctrl-C.")
        // One write, so that no log line splits it. On a thread of its own, since the pipe may have no reader.
        let output = LineWriter(descriptor: STDOUT_FILENO) { _, _ in "" }
        AtExit.flush(output)
        output.write(lines.joined(separator: "\n") + "\n")
    }

    /// The same facts for the log: the addresses it listens on, and its data directory.
    static func facts(_ addresses: BoundAddresses, _ config: ServerConfig) -> Logger.Metadata {
        var facts: Logger.Metadata = [
            "rtmp": "\(addresses.rtmp)", "http": "\(addresses.http)", "data": "\(config.data.directory)", "pid": "\(getpid())",
        ]
        if let rtmps = addresses.rtmps { facts["rtmps"] = "\(rtmps)" }
        if let https = addresses.https { facts["https"] = "\(https)" }
        if let webrtc = addresses.webrtc { facts["webrtc"] = "\(webrtc)" }
        return facts
    }

    /// Replaces a wildcard address by the loopback one, which works on this machine.
    private static func reachable(_ address: HostPort) -> HostPort {
        switch address.host {
        case "0.0.0.0": HostPort(host: "127.0.0.1", port: address.port)
        case "::": HostPort(host: "::1", port: address.port)
        default: address
        }
    }
}
