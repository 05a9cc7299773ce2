import Support

/// Checks across values: settings that contradict each other, and files with the wrong content.
enum ConfigChecks {
    /// A mistake reported at `path` that depends on all of `paths`.
    struct Finding {
        let path: String
        let problem: String
        let paths: [String]

        /// `others`: the settings besides `path` that it depends on.
        init(_ path: String, _ problem: String, with others: String...) {
            self.path = path
            self.problem = problem
            self.paths = [path] + others
        }
    }

    static func findings(_ config: ServerConfig) -> [Finding] {
        portClashes(config) + tls(config.rtmps, config.https) + relations(config) + dataDirectory(config) + keys(config.credentials)
            + proxies(config.access) + rongCloud(config.apps.rongcloud) + ice(config.ice) + cluster(config)
    }

    /// Refuses keys of a cluster that could not be one, and a rotation that would change nothing.
    private static func cluster(_ config: ServerConfig) -> [Finding] {
        let (key, previous) = ("cluster.key", "cluster.previousKey")
        var findings: [Finding] = []
        if config.cluster.key != nil, config.database.url == nil {
            findings.append(Finding(key, "needs database.url: the servers of a cluster share one database", with: "database.url"))
        }
        if config.cluster.previousKey != nil, config.cluster.key == nil {
            findings.append(Finding(previous, "needs \(key)", with: key))
        }
        if let former = config.cluster.previousKey, former == config.cluster.key {
            findings.append(Finding(previous, "is the same as \(key); expected another key, or none", with: key))
        }
        return findings
    }

    /// Refuses two kinds of TURN credentials at once, and half of one.
    private static func ice(_ ice: ServerConfig.ICE) -> [Finding] {
        let (username, credential, secret) = ("ice.username", "ice.credential", "ice.secret")
        guard ice.secret == nil || (ice.username == nil && ice.credential == nil) else {
            return [
                Finding(
                    secret, "excludes \(username) and \(credential): expected a secret shared with the TURN server, or a fixed credential",
                    with: username, credential)
            ]
        }
        if ice.username != nil, ice.credential == nil { return [Finding(username, "needs \(credential)", with: credential)] }
        if ice.username == nil, ice.credential != nil { return [Finding(credential, "needs \(username)", with: username)] }
        return []
    }

    /// Refuses settings with which the cloud could not be called.
    private static func rongCloud(_ cloud: ServerConfig.RongCloud) -> [Finding] {
        guard let host = cloud.host else { return [] }
        let (path, key, secret) = (
            "apps.classroom.rongcloud.host", "apps.classroom.rongcloud.appKey", "apps.classroom.rongcloud.secret"
        )
        var findings: [Finding] = []
        if cloud.appKey == nil || cloud.secret == nil {
            findings.append(Finding(path, "needs \(key) and \(secret)", with: key, secret))
        }
        if host.contains("?") || host.contains("#") {
            findings.append(Finding(path, "has a query; expected a URL that paths can be appended to"))
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
        return [Finding(name, "begins with the key of \(other); expected keys that have nothing in common", with: other)]
    }

    /// Refuses a range that lets every client, including those on this machine, claim any address.
    private static func proxies(_ access: ServerConfig.Access) -> [Finding] {
        guard access.proxyProtocolFrom.contains(where: CIDR.any.contains) else { return [] }
        return [Finding("access.proxyProtocolFrom", "contains every address; expected only the addresses of the proxies")]
    }

    private static func portClashes(_ config: ServerConfig) -> [Finding] {
        var listeners = [("rtmp.listen", config.rtmp.listen), ("http.listen", config.http.listen)]
        if let address = config.rtmps.address { listeners.insert(("rtmps.listen", address), at: 1) }
        if let address = config.httpsAddress { listeners.append(("https.listen", address)) }
        var findings: [Finding] = []
        for (index, (path, address)) in listeners.enumerated() {
            for (other, taken) in listeners[..<index] where address.clashes(with: taken) {
                findings.append(Finding(path, "\(address) is already taken by \(other) (\(taken))", with: other, "rtmps.certificate"))
            }
        }
        return findings
    }

    private static func tls(_ rtmps: ServerConfig.RTMPS, _ https: ServerConfig.HTTPS) -> [Finding] {
        let (certificate, key) = ("rtmps.certificate", "rtmps.key")
        var findings: [Finding] = []
        for (path, address) in [("rtmps.listen", rtmps.listen), ("https.listen", https.listen)]
        where address != nil && rtmps.certificate == nil {
            findings.append(Finding(path, "needs rtmps.certificate and rtmps.key", with: certificate, key))
        }
        if rtmps.certificate != nil, rtmps.key == nil { findings.append(Finding(certificate, "needs rtmps.key", with: key)) }
        if rtmps.certificate == nil, rtmps.key != nil { findings.append(Finding(key, "needs rtmps.certificate", with: certificate)) }
        // RFC 7468 §5.1, §10; older keys have a word before PRIVATE. TLS checks at its start whether the two belong together.
        let files = [
            (certificate, rtmps.certificate, "-----BEGIN CERTIFICATE-----", "PEM certificate"),
            (key, rtmps.key, "PRIVATE KEY-----", "PEM private key"),
        ]
        for case (let path, let file?, let mark, let what) in files {
            do throws(ValueProblem) {
                let text = String(decoding: try ConfigFile.read(file, regular: true), as: UTF8.self)
                if !text.contains(mark) { findings.append(Finding(path, "no \(what) in \(file)")) }
            } catch {
                findings.append(Finding(path, error.description))
            }
        }
        return findings
    }

    private static func relations(_ config: ServerConfig) -> [Finding] {
        var findings: [Finding] = []
        func below(_ path: String, _ value: Int64, _ other: String, _ bound: Int64) {
            guard value >= bound else { return }
            let text = ConfigUnits.duration(milliseconds:)
            findings.append(Finding(path, "\(text(value)) must be less than \(other) (\(text(bound)))", with: other))
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
        let text = ConfigUnits.size(bytes:)
        for (path, size) in messages where size > limits.partialBytes {
            let problem = "\(text(limits.partialBytes)) must hold one message of \(path) (\(text(size)))"
            findings.append(Finding("limits.partialBytes", problem, with: path))
        }
        if limits.messageBytesBeforePublish > limits.bytesBeforePublish {
            let (path, size) = ("limits.messageBeforePublish", limits.messageBytesBeforePublish)
            let problem = "\(text(limits.bytesBeforePublish)) must hold one message of \(path) (\(text(size)))"
            findings.append(Finding("limits.bytesBeforePublish", problem, with: path))
        }
        return findings
    }

    private static func dataDirectory(_ config: ServerConfig) -> [Finding] {
        guard ConfigFile.isNotFolder(config.data.directory) else { return [] }
        return [Finding("data.directory", "\(config.data.directory) is not a folder")]
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
