// The benchmark's dumbbell on ns-3 (3.37, as Debian has it): the same three hops, access links of ten
// times the bottleneck's rate, a drop-tail queue of one bandwidth-delay product, LinuxReno with SACK,
// bulk senders, no traces connected. It prints the columns of crates/sim/examples/bench.rs.
//
//   dumbbell NAME FLOWS MBIT RTT_MS SECONDS
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

using namespace ns3;

namespace
{

constexpr uint32_t MSS = 1448;
constexpr uint32_t PACKET = 1500;

struct Case
{
    const char* name;
    uint32_t flows;
    uint64_t bitsPerSecond;
    double rtt;
    double seconds;

    uint32_t QueuePackets() const
    {
        return static_cast<uint32_t>(bitsPerSecond * rtt / 8 / PACKET) + 1;
    }
};

void
Configure(const Case& c)
{
    // Buffers must not hold a flow back: four times what the path and its queue contain.
    const uint32_t buffer = 8 * c.QueuePackets() * MSS;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpLinuxReno"));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(MSS));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

PointToPointHelper
Link(uint64_t bitsPerSecond, double delay, uint32_t packets)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(bitsPerSecond)));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    link.DisableFlowControl(); // or ns-3 puts a queue disc of its own in front of the queue
    return link;
}

Ipv4InterfaceContainer
Join(PointToPointHelper& link, Ipv4AddressHelper& addresses, Ptr<Node> from, Ptr<Node> to)
{
    Ipv4InterfaceContainer interfaces = addresses.Assign(link.Install(from, to));
    addresses.NewNetwork();
    return interfaces;
}

/// Builds the network, starts a sender per flow, and returns what receives.
ApplicationContainer
Build(const Case& c)
{
    ApplicationContainer sinks;
    NodeContainer routers(2), senders(c.flows), receivers(c.flows);
    Ipv4StaticRoutingHelper routing;
    InternetStackHelper stack;
    stack.SetRoutingHelper(routing);
    stack.SetIpv6StackInstall(false);
    stack.InstallAll();
    auto routes = [&routing](Ptr<Node> node) {
        return routing.GetStaticRouting(node->GetObject<Ipv4>());
    };

    PointToPointHelper access = Link(10 * c.bitsPerSecond, 0, 100 * c.QueuePackets());
    PointToPointHelper bottleneck = Link(c.bitsPerSecond, c.rtt / 2, c.QueuePackets());
    Ipv4AddressHelper middle("10.0.0.0", "255.255.255.252");
    Ipv4AddressHelper left("10.1.0.0", "255.255.255.252"), right("10.2.0.0", "255.255.255.252");
    Ipv4InterfaceContainer ends = Join(bottleneck, middle, routers.Get(0), routers.Get(1));
    routes(routers.Get(0))->AddNetworkRouteTo("10.2.0.0", "255.255.0.0", ends.GetAddress(1), 1);
    routes(routers.Get(1))->AddNetworkRouteTo("10.1.0.0", "255.255.0.0", ends.GetAddress(0), 1);

    Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < c.flows; i++)
    {
        auto up = Join(access, left, senders.Get(i), routers.Get(0));
        auto down = Join(access, right, routers.Get(1), receivers.Get(i));
        routes(senders.Get(i))->SetDefaultRoute(up.GetAddress(1), 1);
        routes(receivers.Get(i))->SetDefaultRoute(down.GetAddress(0), 1);
        const InetSocketAddress port(down.GetAddress(1), 5000);
        sinks.Add(PacketSinkHelper("ns3::TcpSocketFactory", port).Install(receivers.Get(i)));
        BulkSendHelper bulk("ns3::TcpSocketFactory", port);
        bulk.SetAttribute("SendSize", UintegerValue(MSS));
        bulk.Install(senders.Get(i)).Start(Seconds(jitter->GetValue(0, 0.1)));
    }
    return sinks;
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 6)
    {
        std::fprintf(stderr, "usage: dumbbell NAME FLOWS MBIT RTT_MS SECONDS\n");
        return 2;
    }
    const Case c{argv[1],
                 static_cast<uint32_t>(std::atoi(argv[2])),
                 static_cast<uint64_t>(std::atof(argv[3]) * 1e6),
                 std::atof(argv[4]) / 1e3,
                 std::atof(argv[5])};
    Configure(c);
    ApplicationContainer sinks = Build(c);
    Simulator::Stop(Seconds(c.seconds));
    Simulator::Run();

    uint64_t bytes = 0;
    for (uint32_t i = 0; i < sinks.GetN(); i++)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    const double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec +
                       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    const double packets = static_cast<double>(bytes) / MSS;
    const double carried = packets * PACKET * 8 / c.seconds / c.bitsPerSecond;
    std::printf("%-10s %-12s %7.2f %7.3f %6.2f %5.3f %7s %9.1f\n",
                c.name,
                "ns-3",
                c.seconds / cpu,
                packets / cpu / 1e6,
                Simulator::GetEventCount() / cpu / 1e6,
                carried,
                "-",
                used.ru_maxrss / 1024.0);
    Simulator::Destroy();
    return 0;
}
