import LibC
package import Support

/// The addresses that a running server listens on, as it writes them into its data directory when its ports are open. The settings may have changed
/// since its start, and ports of the system's choice stand nowhere else. Blocks.
package struct ServedAddresses: Sendable, Equatable {
    package static let fileName = "ports.json"
    private static let longest = 4 << 10

    /// The server's process, by which the file of one that has ended is known.
    package let process: Int
    package let addresses: BoundAddresses

    package init(process: Int, _ addresses: BoundAddresses) {
        self.process = process
        self.addresses = addresses
    }

    /// Returns why it could not be written; nil when it is done.
    package func write(in directory: String) -> String? {
        let named: [(String, HostPort?)] = [
            ("rtmp", self.addresses.rtmp), ("rtmps", self.addresses.rtmps), ("http", self.addresses.http), ("https", self.addresses.https),
            ("webrtc", self.addresses.webrtc),
        ]
        var members = [JSONValue.Member(name: "process", value: .integer(Int64(self.process)))]
        for (name, address) in named { members.add(name, address.map { "\($0)" }) }
        var bytes: [UInt8] = []
        JSONValue.object(members).write(to: &bytes)
        return WholeFile.replace(bytes + [0x0A], to: "\(directory)/\(Self.fileName)", mode: 0o644).map {
            "\($0.path): \(errorText($0.code))"
        }
    }

    /// Nil when there is no such file, or none that can be read.
    package init?(in directory: String) {
        let descriptor = open("\(directory)/\(Self.fileName)", O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: Self.longest)
        let count = read(descriptor, &buffer, buffer.count)
        guard count > 0, let json = try? JSONParser.parse(buffer[..<count]), case .integer(let process)? = json["process"] else {
            return nil
        }
        func address(_ name: String) -> HostPort? {
            guard case .string(let text)? = json[name] else { return nil }
            return try? HostPort(parsing: text)
        }
        guard let rtmp = address("rtmp"), let http = address("http") else { return nil }
        self.init(
            process: Int(clamping: process),
            BoundAddresses(rtmp: rtmp, rtmps: address("rtmps"), http: http, https: address("https"), webrtc: address("webrtc")))
    }
}
