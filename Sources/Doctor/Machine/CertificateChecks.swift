import CommandSupport
import LibC
import Listening
import NIOSSL
import ServerConfiguration
import Support

/// Certificates: how long they are valid, for which names, and whether clients trust them.
enum CertificateChecks {
    /// The judged facts of a certificate. A plain value.
    struct Facts: Equatable, Sendable {
        /// Seconds since 1970.
        var begins: Int64
        var ends: Int64
        /// Host names, perhaps with a leading `*.`, and IP addresses.
        var names: [String]

        init(begins: Int64, ends: Int64, names: [String]) {
            self.begins = begins
            self.ends = ends
            self.names = names
        }

        init(_ certificate: NIOSSLCertificate) {
            self.init(begins: Int64(certificate.notValidBefore), ends: Int64(certificate.notValidAfter), names: Self.names(certificate))
        }

        private static func names(_ certificate: NIOSSLCertificate) -> [String] {
            certificate._subjectAlternativeNames().compactMap { name in
                switch name.nameType {
                case .dnsName: String(decoding: name.contents, as: UTF8.self).lowercased()
                case .ipAddress: IPText.text(Array(name.contents))
                default: nil
                }
            }
        }

        /// RFC 6125 §6.4.3: a wildcard stands for one label, the first.
        func covers(_ host: String) -> Bool {
            let host = host.lowercased()
            let parent = host.drop { $0 != "." }
            return self.names.contains { $0 == host || ($0.hasPrefix("*.") && !parent.isEmpty && $0.dropFirst() == parent) }
        }
    }

    /// Checks the settings' certificate file. Blocks.
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        guard let path = subject.config.rtmps.certificate else {
            return [.pass("certificate", "none: RTMPS and HTTPS are off")]
        }
        do throws(CertificateStore.Mismatch) { _ = try CertificateStore.pair(subject.config.rtmps.files) } catch {
            return [
                .fail(
                    "certificate", error.description, "put the certificate with its chain and the key that it was made with there, as PEM")
            ]
        }
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(path)
            guard let leaf = chain.first else {
                return [.fail("certificate", "\(path) holds none", "put the certificate and its chain there, as PEM")]
            }
            return self.judge(Facts(leaf), hosts: self.hosts(subject.config), from: path, now: Int64(time(nil)))
        } catch {
            return [.fail("certificate", "\(path) cannot be read: \(error)", "put the certificate and its chain there, as PEM")]
        }
    }

    /// The names that clients use: the hosts of the URLs that the server hands out.
    static func hosts(_ config: ServerConfig) -> [String] {
        var hosts: [String] = []
        for case let url? in [config.urls.rtmps, config.urls.http?.lowercased().hasPrefix("https:") == true ? config.urls.http : nil] {
            guard let start = url.firstRange(of: "://") else { continue }
            let authority = url[start.upperBound...].prefix { $0 != "/" }
            let host =
                authority.hasPrefix("[") ? authority.dropFirst().prefix { $0 != "]" } : authority.prefix { $0 != ":" }
            if !host.isEmpty, !hosts.contains(String(host)) { hosts.append(String(host)) }
        }
        return hosts
    }

    static func judge(_ facts: Facts, hosts: [String], from source: String, now: Int64) -> [DoctorResult] {
        [self.days(facts, source, now), self.names(facts, hosts, source)]
    }

    private static func days(_ facts: Facts, _ source: String, _ now: Int64) -> DoctorResult {
        let name = "certificate's time"
        let renew = "renew it, copy it to where the server reads it, and send the server SIGHUP (systemctl reload earshot)"
        let until = TimeText.short("\(Moment(milliseconds: facts.ends * 1_000))")
        if now < facts.begins {
            return .fail(
                name, "\(source) is not valid before \(TimeText.short("\(Moment(milliseconds: facts.begins * 1_000))"))",
                "check the clock; otherwise \(renew)")
        }
        let days = (facts.ends - now) / 86_400
        if now >= facts.ends { return .fail(name, "\(source) expired at \(until)", renew) }
        let measured = "\(days) days left, until \(until)"
        return days < 14 ? .warn(name, "\(source): \(measured)", renew) : .pass(name, measured)
    }

    private static func names(_ facts: Facts, _ hosts: [String], _ source: String) -> DoctorResult {
        let name = "certificate's names"
        let listed = facts.names.isEmpty ? "none" : facts.names.prefix(6).joined(separator: ", ") + (facts.names.count > 6 ? ", …" : "")
        guard !hosts.isEmpty else {
            return facts.names.isEmpty
                ? .fail(name, "\(source) names no host in subjectAltName", "make it for the server's host name: clients look there only")
                : .pass(name, "\(listed) (urls.rtmps and urls.http name no host to compare)")
        }
        let missing = hosts.filter { !facts.covers($0) }
        guard !missing.isEmpty else { return .pass(name, "\(listed); covers \(hosts.joined(separator: ", "))") }
        return .fail(
            name, "\(source) is for \(listed), not for \(missing.joined(separator: ", "))",
            "make it for the host in urls.rtmps and urls.http, or correct these")
    }
}
