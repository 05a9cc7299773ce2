import Support

/// Checks across values: settings that contradict each other, and files with the wrong content.
enum ConfigChecks {
    /// A mistake reported at `path` that depends on all of `paths`.
    struct Finding {
        var path: String
        var problem: String
        var paths: [String]
    }

    static func findings(_ config: ServerConfig) -> [Finding] {
        portClashes(config) + tls(config.rtmps, config.https) + relations(config) + dataDirectory(config) + keys(config.credentials)
            + proxies(config.access) + rongCloud(config.apps.rongcloud) + cluster(config)
    }

    /// Refuses keys of a cluster that could not be one, and a rotation that would change nothing.
    private static func cluster(_ config: ServerConfig) -> [Finding] {
        let (key, previous) = ("cluster.key", "cluster.previousKey")
        var findings: [Finding] = []
        if config.cluster.key != nil, config.database.url == nil {
            findings.append(
                Finding(
                    path: key, problem: "needs database.url: the servers of a cluster share one database", paths: [key, "database.url"]))
        }
        if config.cluster.previousKey != nil, config.cluster.key == nil {
            findings.append(Finding(path: previous, problem: "needs \(key)", paths: [previous, key]))
        }
        if let former = config.cluster.previousKey, former == config.cluster.key {
            findings.append(
                Finding(path: previous, problem: "is the same as \(key); expected another key, or none", paths: [previous, key]))
        }
        return findings
    }

    /// Refuses settings with which the cloud could not be called.
    private static func rongCloud(_ cloud: ServerConfig.RongCloud) -> [Finding] {
        guard let host = cloud.host else { return [] }
        let (path, key, secret) = (
            "apps.classroom.rongcloud.host", "apps.classroom.rongcloud.appKey", "apps.classroom.rongcloud.secret"
        )
        var findings: [Finding] = []
        if cloud.appKey == nil || cloud.secret == nil {
            findings.append(Finding(path: path, problem: "needs \(key) and \(secret)", paths: [path, key, secret]))
        }
        if host.contains("?") || host.contains("#") {
            findings.append(Finding(path: path, problem: "has a query; expected a URL that paths can be appended to", paths: [path]))
        }
        return findings
    }

    /// Refuses keys that the server would refuse at its start.
    private static func keys(_ credentials: ServerConfig.Credentials) -> [Finding] {
        let keys = [
            ("credentials.key", credentials.key), ("credentials.backupKey", credentials.backupKey),
            ("credentials.playKey", credentials.playKey),
        ]
        guard let (name, other) = ServerConfig.Credentials.beginningAlike(keys) else { return [] }
        return [
            Finding(
                path: name, problem: "begins with the key of \(other); expected keys that have nothing in common", paths: [name, other])
        ]
    }

    /// Refuses a range that lets every client, including those on this machine, claim any address.
    private static func proxies(_ access: ServerConfig.Access) -> [Finding] {
        guard access.proxyProtocolFrom.contains(where: CIDR.any.contains) else { return [] }
        let path = "access.proxyProtocolFrom"
        return [Finding(path: path, problem: "contains every address; expected only the addresses of the proxies", paths: [path])]
    }

    private static func portClashes(_ config: ServerConfig) -> [Finding] {
        var listeners = [("rtmp.listen", config.rtmp.listen), ("http.listen", config.http.listen)]
        if let address = config.rtmps.address { listeners.insert(("rtmps.listen", address), at: 1) }
        if let address = config.httpsAddress { listeners.append(("https.listen", address)) }
        var findings: [Finding] = []
        for (index, (path, address)) in listeners.enumerated() {
            for (other, taken) in listeners[..<index] where address.clashes(with: taken) {
                findings.append(
                    Finding(
                        path: path, problem: "\(address) is already taken by \(other) (\(taken))",
                        paths: [path, other, "rtmps.certificate"]))
            }
        }
        return findings
    }

    private static func tls(_ rtmps: ServerConfig.RTMPS, _ https: ServerConfig.HTTPS) -> [Finding] {
        let both = ["rtmps.certificate", "rtmps.key"]
        var findings: [Finding] = []
        if rtmps.certificate == nil, rtmps.listen != nil {
            findings.append(Finding(path: "rtmps.listen", problem: "needs rtmps.certificate and rtmps.key", paths: both + ["rtmps.listen"]))
        }
        if rtmps.certificate == nil, https.listen != nil {
            findings.append(Finding(path: "https.listen", problem: "needs rtmps.certificate and rtmps.key", paths: both + ["https.listen"]))
        }
        if rtmps.certificate != nil, rtmps.key == nil {
            findings.append(Finding(path: "rtmps.certificate", problem: "needs rtmps.key", paths: both))
        }
        if rtmps.certificate == nil, rtmps.key != nil {
            findings.append(Finding(path: "rtmps.key", problem: "needs rtmps.certificate", paths: both))
        }
        // RFC 7468 §5.1, §10; older keys have a word before PRIVATE. TLS checks at its start whether the two belong together.
        let files = [
            ("rtmps.certificate", rtmps.certificate, "-----BEGIN CERTIFICATE-----", "PEM certificate"),
            ("rtmps.key", rtmps.key, "PRIVATE KEY-----", "PEM private key"),
        ]
        for case (let path, let file?, let mark, let what) in files {
            do throws(ValueProblem) {
                let text = String(decoding: try ConfigFile.read(file, regular: true), as: UTF8.self)
                if !text.contains(mark) { findings.append(Finding(path: path, problem: "no \(what) in \(file)", paths: [path])) }
            } catch {
                findings.append(Finding(path: path, problem: error.description, paths: [path]))
            }
        }
        return findings
    }

    private static func relations(_ config: ServerConfig) -> [Finding] {
        var findings: [Finding] = []
        func below(_ path: String, _ value: Int64, _ other: String, _ bound: Int64) {
            guard value >= bound else { return }
            let text = ConfigUnits.duration(milliseconds:)
            findings.append(
                Finding(path: path, problem: "\(text(value)) must be less than \(other) (\(text(bound)))", paths: [path, other]))
        }
        below("relay.skipBehind", config.relay.skipBehindMs, "relay.maxBehind", config.relay.maxBehindMs)
        for (_, coalesceMs) in config.relay.coalesceByAppMs.sorted(by: { $0.key < $1.key }) {
            below("relay.coalesceByApp", coalesceMs, "relay.skipBehind", config.relay.skipBehindMs)
        }
        below("relay.coalesce", config.relay.coalesceMs, "relay.skipBehind", config.relay.skipBehindMs)
        let limits = config.limits
        let messages = [
            ("limits.videoMessage", limits.videoMessageBytes), ("limits.audioMessage", limits.audioMessageBytes),
            ("limits.dataMessage", limits.dataMessageBytes),
        ]
        for (path, size) in messages where size > limits.partialBytes {
            let text = ConfigUnits.size(bytes:)
            findings.append(
                Finding(
                    path: "limits.partialBytes", problem: "\(text(limits.partialBytes)) must hold one message of \(path) (\(text(size)))",
                    paths: ["limits.partialBytes", path]))
        }
        if limits.messageBytesBeforePublish > limits.bytesBeforePublish {
            let text = ConfigUnits.size(bytes:)
            findings.append(
                Finding(
                    path: "limits.bytesBeforePublish",
                    problem: "\(text(limits.bytesBeforePublish)) must hold one message of limits.messageBeforePublish "
                        + "(\(text(limits.messageBytesBeforePublish)))",
                    paths: ["limits.bytesBeforePublish", "limits.messageBeforePublish"]))
        }
        return findings
    }

    private static func dataDirectory(_ config: ServerConfig) -> [Finding] {
        guard ConfigFile.isNotFolder(config.data.directory) else { return [] }
        return [Finding(path: "data.directory", problem: "\(config.data.directory) is not a folder", paths: ["data.directory"])]
    }
}

extension ServerConfig.Credentials {
    /// The name of the first key that begins with another key, and that key's name.
    package static func beginningAlike(_ keys: [(name: String, key: String?)]) -> (String, String)? {
        for case (let name, let key?) in keys {
            for case (let other, let start?) in keys where key != start && key.utf8.starts(with: start.utf8) { return (name, other) }
        }
        return nil
    }
}
