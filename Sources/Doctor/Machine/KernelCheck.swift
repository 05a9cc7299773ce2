/// The kernel's settings for TCP and UDP. Reads proc(5); blocks.
enum KernelCheck {
    /// nil for values that this kernel, or this container, does not show.
    struct Values: Equatable {
        var somaxconn: Int?
        var synBacklog: Int?
        /// Bytes: least, usual, most.
        var receive: [Int] = []
        var send: [Int] = []
        var congestion: String?
        var available: [String] = []
        /// Bytes that a UDP socket may ask for.
        var mostReceive: Int?
        var mostSend: Int?
    }

    static func run() -> [DoctorResult] {
        let net = "/proc/sys/net"
        return self.judge(
            Values(
                somaxconn: SmallFile.number("\(net)/core/somaxconn"), synBacklog: SmallFile.number("\(net)/ipv4/tcp_max_syn_backlog"),
                receive: SmallFile.numbers("\(net)/ipv4/tcp_rmem"), send: SmallFile.numbers("\(net)/ipv4/tcp_wmem"),
                congestion: SmallFile.text("\(net)/ipv4/tcp_congestion_control")?.split(separator: "\n").first.map(String.init),
                available: (SmallFile.text("\(net)/ipv4/tcp_available_congestion_control") ?? "")
                    .split { $0 == " " || $0 == "\n" }.map(String.init),
                mostReceive: SmallFile.number("\(net)/core/rmem_max"), mostSend: SmallFile.number("\(net)/core/wmem_max")))
    }

    /// The backlog that the server asks for; the kernel cuts it to somaxconn.
    private static let backlog = 4_096
    /// A viewer of 8 Mb/s at a round trip of 200 ms has 200 KB in flight; four times that leaves room for a loss.
    private static let leastSend = 1 << 20
    private static let leastReceive = 1 << 20

    /// What the port of WebRTC asks for, a keyframe to a hundred viewers at once; and what the kernel gives by itself.
    private static let manyDatagrams = 4 << 20
    private static let leastDatagrams = 208 << 10

    static func judge(_ values: Values) -> [DoctorResult] {
        [self.backlogs(values), self.buffers(values), self.datagrams(values), self.congestion(values)]
    }

    private static func backlogs(_ values: Values) -> DoctorResult {
        let name = "TCP backlog"
        guard let somaxconn = values.somaxconn else { return .skip(name, "net.core.somaxconn cannot be read here") }
        let syn = values.synBacklog.map { ", tcp_max_syn_backlog \($0)" } ?? ""
        let measured = "somaxconn \(somaxconn)\(syn)"
        var low: [String] = []
        if somaxconn < self.backlog { low.append("net.core.somaxconn=\(self.backlog)") }
        if let syn = values.synBacklog, syn < 1_024 { low.append("net.ipv4.tcp_max_syn_backlog=4096") }
        guard !low.isEmpty else { return .pass(name, measured) }
        return .warn(
            name, "\(measured): when many clients come back at once, some wait a second or more", "sysctl -w \(low.joined(separator: " "))")
    }

    private static func buffers(_ values: Values) -> DoctorResult {
        let name = "TCP buffers"
        guard values.receive.count == 3, values.send.count == 3 else { return .skip(name, "tcp_rmem and tcp_wmem cannot be read here") }
        func text(_ bytes: Int) -> String { "\(bytes >> 10) KiB" }
        let measured = "up to \(text(values.receive[2])) received, \(text(values.send[2])) sent"
        var low: [String] = []
        if values.receive[2] < self.leastReceive { low.append("net.ipv4.tcp_rmem='4096 131072 6291456'") }
        if values.send[2] < self.leastSend { low.append("net.ipv4.tcp_wmem='4096 16384 4194304'") }
        guard !low.isEmpty else { return .pass(name, measured) }
        return .warn(name, "\(measured): too little for far viewers", "sysctl -w \(low.joined(separator: " "))")
    }

    private static func datagrams(_ values: Values) -> DoctorResult {
        let name = "UDP buffers"
        guard let receive = values.mostReceive, let send = values.mostSend else {
            return .skip(name, "net.core.rmem_max and net.core.wmem_max cannot be read here")
        }
        let measured = "up to \(receive >> 10) KiB received, \(send >> 10) KiB sent"
        guard min(receive, send) < self.manyDatagrams else { return .pass(name, measured) }
        let more = "sysctl -w net.core.rmem_max=\(self.manyDatagrams) net.core.wmem_max=\(self.manyDatagrams)"
        if min(receive, send) >= self.leastDatagrams { return .pass(name, "\(measured) (for a hundred viewers by WebRTC: \(more))") }
        return .warn(name, "\(measured): too little for the pictures of viewers by WebRTC", more)
    }

    private static func congestion(_ values: Values) -> DoctorResult {
        let name = "congestion control"
        guard let congestion = values.congestion else { return .skip(name, "tcp_congestion_control cannot be read here") }
        switch congestion {
        case "bbr", "cubic": return .pass(name, congestion + (congestion == "cubic" ? " (bbr does better on mobile networks)" : ""))
        default:
            let better = values.available.contains("bbr") ? "bbr" : "cubic"
            return .warn(name, congestion, "sysctl -w net.ipv4.tcp_congestion_control=\(better)")
        }
    }
}
